package node

import (
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// ErrNotHost is for a write to a shard of which this node is no host, or no more: its hosts
// take it.
var ErrNotHost = fmt.Errorf("%w: this node is no host of the shard", ErrDenied)

// tenure is the time for which this node holds a shard: what it has shown of the handover
// to the hosts, if this node is none, and whether it is over. Methods may be called from
// several goroutines.
type tenure struct {
	mu       sync.Mutex // guards what follows
	handover placement.Handover
	over     bool // no record enters any more
}

// noTerm is a term in which no sync counts.
const noTerm placement.Term = 0

// hosts follows a change of the list of members or of the layout.
func (t *tenure) hosts(ids []ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handover.Hosts(ids)
}

func (t *tenure) term() placement.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handover.Term()
}

// equal notes a sync of everything that has proved this node and a peer equal, under one
// list.
func (t *tenure) equal(peer ID, began placement.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if began != noTerm {
		t.handover.Equal(peer, began)
	}
}

// entered follows a commit of what has come by syncs that began in a term, or what this
// node has written in it. The set's commits are held since before the term was read, or
// since the commit, so that the set is not left in between.
func (t *tenure) entered(began placement.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handover.Term() != began {
		t.handover.Changed()
	}
}

// end ends the tenure, if the shard may be dropped. It stays ended where that cannot be made
// durable, since it may be all the same. The set's commits are held alone.
func (t *tenure) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || t.handover.MayDrop()
	return t.over
}

func (t *tenure) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// mayEnd reports whether end would, or has: a set that was left is not asked any more.
func (t *tenure) mayEnd() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over || t.handover.MayDrop()
}

// rehost follows a change of the list of members or of the layout in all sets.
func (ns *Namespace) rehost() {
	if ns.rule == nil {
		return
	}
	for _, set := range ns.Sets() {
		set.rehost()
	}
}

func (set *Set) rehost() {
	var hosts []ID
	if layout := set.ns.placed.Load().layout; layout != nil {
		hosts = layout.Hosts(set.shard)
	}
	set.tenure.hosts(hosts)
}

// takes says why new records do not enter the set here, or nil: those that this node
// writes, and those of pushes. Of a shard whose hosts are not known it takes them: it keeps
// them until it knows. commits is held.
func (set *Set) takes() error {
	if set.ns.rule == nil {
		return nil
	}
	if set.tenure.ended() {
		return dbadapter.ErrClosed
	}
	if host, known := set.isHost(set.ns.node.ID); known && !host {
		return ErrNotHost
	}
	return nil
}
