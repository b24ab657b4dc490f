package check

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Members that are removed while keys are written by placement writer: what they alone held is lost
// with them, and until they and others have heard of it they go on as hosts.

// Removed notes that a node is removed for good, or may be at any time.
func (w *Written) Removed(node int) { w.gone[node] = true }

// Left notes that a node has dropped a shard, of which it held these records; hosts are those that it
// handed the shard over to.
func (w *Written) Left(node int, hosts []int, dump []dbadapter.Record) {
	held := map[dbadapter.Version]bool{}
	for i := range dump {
		held[dump[i].Version] = true
	}
	for i := range w.ops {
		if o := &w.ops[i]; o.hosts[node] && held[o.version] {
			delete(o.hosts, node)
			for _, host := range hosts {
				o.hosts[host] = true
			}
		}
	}
}

// lost reports whether what is acknowledged may be lost: all that were known to hold it were removed.
func (w *Written) lost(o *writtenOp) bool {
	for host := range o.hosts {
		if !w.gone[host] {
			return false
		}
	}
	return len(w.gone) > 0
}

// unled reports whether a write may not be found before its shard is looked through, as the entry that
// leads to it may be lost: as many nodes were removed as hosts were to hold the entry.
func (w *Written) unled(o *writtenOp) bool { return len(w.gone) > 0 && o.counted <= len(w.gone) }

// unheard reports whether a node may not have heard that it, or one that it goes by, was removed.
func (w *Written) unheard(node int, by []int) bool {
	return w.gone[node] || slices.ContainsFunc(by, func(host int) bool { return w.gone[host] })
}
