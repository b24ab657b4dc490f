// Package check judges runs. It is told what applications asked for, what
// nodes answered, and what they held in the end, and says which of the promises
// of package peer were broken. It knows nothing of simulators or sockets.
package check

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt"
	"github.com/syncd-io/syncd/reconcile"
)

// Op is a write that was intended; 0 is none.
type Op int

// Sync is a session that has ended, as one of its sides saw it. Both sides may
// be reported, each by a Sync of its own.
type Sync struct {
	// Node is the side whose report it is, Peer the other.
	Node, Peer int
	Report     reconcile.Report
	// Before are the records of Node and Peer when the session took its
	// snapshots, After those when it ended for Node. After[1] is nil if the
	// peer is down.
	Before, After [2][]dbadapter.Record
	// Gets and Gives say which ways records travel, seen from Node.
	Gets, Gives bool
	// Quiet says that nothing else wrote at either side meanwhile.
	Quiet bool
}

// Final is what a node held when all was quiet.
type Final struct {
	Node int
	// Reach numbers the groups of nodes that can reach each other.
	Reach int
	// Down says that the node does not run; nothing else is then looked at.
	Down bool
	// Dump is all records, tombstones included, by key.
	Dump []dbadapter.Record
	// Digest, Records and Cells are what the node keeps.
	Digest  dbadapter.Digest
	Records uint64
	Cells   []iblt.Cell
	// Recomputed is the same, worked out afresh from the dump.
	Recomputed Recomputed
}

// Recomputed is what a node should keep.
type Recomputed struct {
	Digest  dbadapter.Digest
	Records uint64
	Cells   []iblt.Cell
}

// Violation is one broken promise.
type Violation struct {
	Rule Rule   `json:"rule"`
	Node int    `json:"node"`
	Key  string `json:"key,omitempty"`
	Text string `json:"text"`
}

// Rule names a promise.
type Rule string

// History is what happened. The zero value is an empty one.
type History struct{}

// Intend notes a write before it is sent.
func (h *History) Intend(node int, key string, deleted bool, value []byte) Op { return 0 }

// Acknowledge notes that the node has answered: it is durable, as version.
func (h *History) Acknowledge(op Op, version dbadapter.Version) {}

// Refuse notes that the write was surely not made.
func (h *History) Refuse(op Op, err error) {}

// Restored notes that the node's disk was replaced by an older copy.
func (h *History) Restored(node int) {}

// Observe notes a record seen at a node.
func (h *History) Observe(node int, r *dbadapter.Record) {}

// Synced notes the end of a session.
func (h *History) Synced(s *Sync) {}

// Check judges the history and what the nodes hold in the end.
func (h *History) Check(finals []Final) []Violation { return nil }
