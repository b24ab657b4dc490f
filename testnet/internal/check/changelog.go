package check

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// changeLog is a node's change log, with what each key held after each change.
type changeLog struct {
	node    int
	changes []Change
	of      map[string][]keyChange // by key, in order
	keys    map[dbadapter.Index]map[string]bool
}

// Change is a change of a change log: what keys that share an index hold since.
type Change struct {
	Seq   uint64
	Index dbadapter.Index
	Keys  [][]byte
	Held  []*dbadapter.Record // of each key; nil for nothing
}

type keyChange struct {
	seq  uint64
	what holding
}

// holding is what a key holds; the zero value is nothing.
type holding struct {
	stamp
	there bool
}

func holds(r *dbadapter.Record) holding {
	if r == nil {
		return holding{}
	}
	return holding{stampOf(r), true}
}

// String is how it is named in a verdict.
func (x holding) String() string {
	if !x.there {
		return "nothing"
	}
	return x.stamp.String()
}

// Changed notes a change of the change log of a node. A log is told from its beginning;
// changes that were told before may be told again.
func (h *History) Changed(node int, log dbadapter.LogID, c *Change) {
	l := h.logs[log]
	if l == nil {
		l = &changeLog{node: node, of: map[string][]keyChange{}, keys: map[dbadapter.Index]map[string]bool{}}
		h.logs[log] = l
	}
	switch end := uint64(len(l.changes)); {
	case c.Seq <= end:
		return
	case c.Seq > end+1:
		h.found.say(Watch, node, "", "change %d follows change %d of its log", c.Seq, end)
		return
	}
	l.changes = append(l.changes, *c)
	if l.keys[c.Index] == nil {
		l.keys[c.Index] = map[string]bool{}
	}
	for i, key := range c.Keys {
		l.keys[c.Index][string(key)] = true
		l.of[string(key)] = append(l.of[string(key)], keyChange{c.Seq, holds(c.Held[i])})
	}
}

// at is what a key held after a change of the log, of this key or another.
func (l *changeLog) at(key string, seq uint64) (what holding) {
	for _, c := range slices.Backward(l.of[key]) {
		if c.seq <= seq {
			return c.what
		}
	}
	return holding{}
}

// between is how many changes of a key are behind one change, up to another one.
func (l *changeLog) between(key string, after, upTo uint64) (n int) {
	for _, c := range l.of[key] {
		if c.seq > after && c.seq <= upTo {
			n++
		}
	}
	return n
}

// shared reports whether a key has ever shared its index.
func (l *changeLog) shared(c *Change) bool { return len(l.keys[c.Index]) > 1 }

// changesOf are the changes that a cursor can be of, which stands behind one key of a
// change. They are the change of its number, of which it is the last key, and the one
// after it, behind which other keys follow.
func (l *changeLog) changesOf(seq uint64, key string) (of []*Change) {
	for n := seq; n <= seq+1; n++ {
		if n == 0 || n > uint64(len(l.changes)) {
			continue
		}
		c := &l.changes[n-1]
		i := slices.IndexFunc(c.Keys, func(k []byte) bool { return string(k) == key })
		if i >= 0 && (i == len(c.Keys)-1) == (n == seq) {
			of = append(of, c)
		}
	}
	return of
}
