package model

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/roster"
)

// Records are all records that the node holds, tombstones included, by key, read
// anew. The caller must not change them. A node that is down has no records here.
func (n *Node) Records() []dbadapter.Record {
	if n.process == nil {
		return nil
	}
	n.process.dumped = -1
	return n.process.everything()
}

// Kept is the node's kept log; nil before it has joined.
func (n *Node) Kept() []dbadapter.Kept {
	if n.process == nil || n.process.ns == nil {
		return nil
	}
	log := []dbadapter.Kept{}
	for _, why := range []dbadapter.Why{dbadapter.KeptConflict, dbadapter.KeptSetAside} {
		for k, err := range n.process.ns.Kept(context.Background(), why, 0) {
			if err != nil {
				panic(err) // it is in memory, and open
			}
			log = append(log, k)
		}
	}
	return log
}

// Get is the value under a key, if the node reads one there.
func (n *Node) Get(key string) ([]byte, bool) {
	if n.process == nil || n.process.ns == nil {
		return nil, false
	}
	records := n.process.records()
	at, ok := slices.BinarySearchFunc(records, key, func(r dbadapter.Record, key string) int { return strings.Compare(string(r.Key), key) })
	if !ok || !n.process.ns.Present(&records[at]) {
		return nil, false
	}
	return records[at].Value, true
}

// State is the sum of the live digests of what a node holds that is up, and the number of records.
func (n *Node) State() (sum dbadapter.Digest, records uint64) {
	if n.process.ns == nil {
		return sum, 0
	}
	for _, sh := range n.process.shards {
		d, count, _ := sh.set.Live.State()
		sum, records = sum.Add(d), records+count
	}
	return sum, records
}

func (sh *shard) cells(most int) ([]rateless.Cell, error) {
	snap, err := sh.set.Live.Snapshot(context.Background(), sh.store, nil)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return snap.Cells(0, min(most, sh.set.Live.Cells()))
}

// Busy reports whether a session runs at the node, or a write waits for its
// sync.
func (n *Node) Busy() bool {
	p := n.process
	return p != nil && (len(p.sessions) > 0 || p.routing > 0 || slices.ContainsFunc(p.shards, func(sh *shard) bool { return len(sh.store.waiting) > 0 }))
}

// Member reports whether the node is a member, as far as it knows.
func (n *Node) Member() bool {
	if n.process == nil || n.process.ns == nil {
		return false
	}
	m, known := n.process.ns.Members().Member(n.id)
	return known && n.process.ns.Removal() == nil && (m.Expires == 0 || !n.wall.now().After(m.Expires.Time()))
}

// List is the digest of the list of members as the node has it; the zero value
// before it has joined.
func (n *Node) List() (d roster.Digest) {
	if n.process != nil && n.process.ns != nil {
		d = n.process.ns.Members().Digest()
	}
	return d
}

// Roster is the list of members as the node has it; nil before it has joined.
func (n *Node) Roster() *membership.Members {
	if n.process == nil || n.process.ns == nil {
		return nil
	}
	return n.process.ns.Members()
}

// Lists reports whether a node is a member by this node's list.
func (n *Node) Lists(other int) bool {
	list := n.Roster()
	return list != nil && list.Has(n.cluster.nodes[other].id, node.RoleRead)
}

// Writes reports whether a node may write by this node's list.
func (n *Node) Writes(other int) bool {
	list := n.Roster()
	return list != nil && list.Has(n.cluster.nodes[other].id, node.RoleWrite)
}

// FloorAt is up to when the node keeps out what it does not hold; 0 while it recovers, and
// before it has joined.
func (n *Node) FloorAt() dbadapter.Timestamp {
	if n.process == nil || n.process.mark.Recovering {
		return 0
	}
	return n.process.mark.Floor
}

// Floor is up to when the node has collected; zero for never, and before it has
// joined.
func (n *Node) Floor() (floor time.Time) {
	if n.process != nil && n.process.ns != nil && !n.process.cut() {
		floor = n.process.set.Collection().Floor
	}
	return floor
}

// Member is one of them.
type Member = roster.Member

// Liar reports whether the node's greetings are not true.
func (n *Node) Liar() bool { return n.liar }

// Number is the node of an id.
func (c *Cluster) Number(id node.ID) int { return c.byID[id].number }

// Latest is the reading that the node's clock goes on from, now and after a restart:
// a write that was refused has moved it, too.
func (n *Node) Latest() dbadapter.Timestamp {
	if n.process == nil || n.process.ns == nil {
		return 0
	}
	var latest dbadapter.Timestamp
	for _, sh := range n.process.shards {
		latest = max(latest, sh.store.Ceiling())
	}
	if ahead := n.process.ns.Ahead(); ahead > 0 {
		latest = max(latest, dbadapter.TimestampAt(n.wall.now().Add(n.process.ns.Members().Policy().MaxSkew+ahead)))
	}
	return latest
}
