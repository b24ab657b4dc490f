package node

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/watermark"
)

// ErrNotHost is for a write to a shard of which this node is no host, or no more: its hosts
// take it.
var ErrNotHost = fmt.Errorf("%w: this node is no host of the shard", ErrDenied)

// tenure is the time for which this node holds a shard. It has what the node's
// syncs have shown by package quorum, and whether it is over. Methods may be called
// from several goroutines.
type tenure struct {
	mu   sync.Mutex // guards what follows
	host quorum.Host
	over bool // no record enters any more
}

// noTerm is a term in which no sync counts.
const noTerm = quorum.NoTerm

// goes follows a change of the row.
func (t *tenure) goes(row *quorum.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.host.Go(row)
}

// is follows whether this node is whole, as is durable. Who lost records at a time counts no
// sync for a while.
func (t *tenure) is(whole, lost bool, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case whole:
		t.host.Whole, t.host.LostUntil = true, 0
	case t.host.Whole || lost && t.host.LostUntil == 0:
		t.host.Lose()
		if lost {
			t.host.LostUntil = now + quorum.LongestDeadline
		}
	}
}

// term is that in which a record enters now.
func (t *tenure) term() quorum.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.host.Term(t.host.LostUntil)
}

// begun is the term of a sync that begins now.
func (t *tenure) begun(now time.Duration) quorum.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.host.Term(now)
}

// equal notes a sync of everything that has proved this node and a peer equal, which greeted with a
// floor. It reports whether something follows: this node becomes whole, is ready, or may leave.
func (t *tenure) equal(peer ID, floor dbadapter.Timestamp, began quorum.Term) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	follows := func() [3]bool {
		becomes, _ := t.host.BecomesWhole()
		return [3]bool{becomes, t.host.Ready() && !t.host.Row().AtRest(), t.host.MayDrop()}
	}
	before := follows()
	t.host.Equal(peer, floor != watermark.NoFloor, uint64(floor), began)
	return follows() != before
}

// becomesWhole reports whether this node is whole from now on, which is to be made
// durable. Up to floor it then keeps out what it does not hold.
func (t *tenure) becomesWhole() (whole bool, floor dbadapter.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole, up := t.host.BecomesWhole()
	return whole, dbadapter.Timestamp(up)
}

func (t *tenure) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.host.Ready()
}

// seeks reports whether this node has still to be found equal under its row. That
// is to become whole, to be ready for a move, or to drop the shard.
func (t *tenure) seeks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.host.Row()
	switch {
	case row == nil:
		return false
	case !row.IsHost(t.host.Self):
		return !t.host.MayDrop()
	}
	return !t.host.Whole || !row.AtRest() && row.IsNew(t.host.Self) && !t.host.Ready()
}

// Seeks reports whether a set of this node, a member, has still to be found equal under its row: syncs
// are due.
func (ns *Namespace) Seeks() bool {
	return ns.rule != nil && ns.Admits(ns.node.ID) && slices.ContainsFunc(ns.Sets(), func(set *Set) bool { return set.tenure.seeks() })
}

// entered follows a commit of what has come by syncs that began in a term, or what
// this node has written in it. The set's commits are held since before the term was
// read, or since the commit. So the set is not left in between.
func (t *tenure) entered(began quorum.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.host.Entered(began)
}

// end ends the tenure, if the shard may be dropped. It stays ended where that cannot be made
// durable, since it may be all the same. The set's commits are held alone.
func (t *tenure) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || t.host.MayDrop()
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
	return t.over || t.host.MayDrop()
}

// rehost follows a change of the rows in all sets.
func (ns *Namespace) rehost() {
	if ns.rule == nil {
		return
	}
	for _, set := range ns.Sets() {
		set.rehost()
	}
}

func (set *Set) rehost() {
	if row := set.row(); row != nil {
		set.tenure.goes(row)
	}
}

// row is that of the set's shard; nil: none is known.
func (set *Set) row() *quorum.Row {
	if set.ns.rule == nil {
		return nil
	}
	return set.ns.Row(set.shard)
}

// Lists is what a sync of the part greets with as this node's list of members. Two
// shards are equal only under the row that both have (package quorum, 8), so their
// rows are lists, too.
func (p *Part) Lists() [16]byte {
	list := p.ns.Members().Digest()
	if p.isControl() || p.set.row() == nil {
		return list
	}
	name := p.set.row().Name()
	sum := sha256.Sum256(slices.Concat(list[:], name[:]))
	return [16]byte(sum[:])
}

// conclude does what follows from a sync that has proved this node equal to another
// one. It makes durable that this node is whole. The driver is told.
func (set *Set) conclude() error {
	defer set.ns.Hold().Release()
	set.ns.relisted()
	return set.gc.Update(set.relist)
}

// ready reports whether a member has signed that it is ready for a row.
func (ns *Namespace) ready(_ placement.Shard, row quorum.Name, id ID) bool {
	return (*ns.heldBy.Load())[id].Ready[row]
}

// Unready are the new hosts of a row that have not signed, as far as is known here, that they are ready.
func (ns *Namespace) Unready(row *quorum.Row) (ids []ID) {
	for _, id := range row.New {
		if !ns.ready(0, row.Name(), id) {
			ids = append(ids, id)
		}
	}
	return ids
}
