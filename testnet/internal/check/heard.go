package check

import (
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// What a node that has lost the right to write does with its own writes: the rule aside.

// Proved notes that a sync has proved these records of a node, by key, to be those of another one.
func (h *History) Proved(node int, dump []dbadapter.Record) {
	for i := range h.ops {
		if o := &h.ops[i]; o.node == node && o.state == acknowledged && !o.proved {
			o.proved = o.in(dump)
		}
	}
}

// Heard notes that a node has heard that it had lost the right to write, also if it has it
// again. It holds these records now, by key.
func (h *History) Heard(node int, dump []dbadapter.Record) {
	for i := range h.ops {
		if o := &h.ops[i]; o.node == node && o.state == acknowledged && !o.proved && o.in(dump) {
			h.found.say(Aside, node, o.key, "it has heard that it lost the right to write, and holds %s, which no verified sync has shown to another node", o.stamp())
		}
	}
}

func (o *op) stamp() stamp { return stamp{o.version, o.deleted, o.value, o.content, untold} }

// in reports whether what was written is among these records, by key.
func (o *op) in(dump []dbadapter.Record) bool {
	at, ok := slices.BinarySearchFunc(dump, o.key, func(r dbadapter.Record, key string) int { return strings.Compare(string(r.Key), key) })
	return ok && dump[at].Version == o.version && contentOf(dump[at].Deleted, dump[at].Value) == o.content
}
