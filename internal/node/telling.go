package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What this node tells of the shards that it hosts, where the placement has a locator
// (placement.Rule): which keys each has. A commit notes which indices it has changed, under the store's locks; what is
// said of them is read and told when a poll comes. So each commit before a poll is in its
// answer, in the order of the commits, but for what is committed to a set of which nothing is told (toldanew.go).
//
// A shard tells of each index under which it holds a record, tombstones too, the shard itself:
// so a key of which no host tells reads as it would at the hosts, also to a writer that asks
// for the version of a deletion.

// maxNoted is how many changed indices of a set are noted between two polls: 64 KiB; of a large one an eighth
// of its records, and readAtOnce at most. With more the set is told anew.
const maxNoted = 1 << 12

// maxBeside is how many are noted while the set is read beside polls, at most an eighth of its records: 4 MiB.
// With more it is read anew.
const maxBeside = 1 << 18

// bell wakes polls that wait for a commit.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // nil: no poll waits
}

// listen returns what the next ring closes.
func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// Waiter lets a poll of the feed wait until rung is closed, and reports whether it may
// wait again. false: it has waited for directory.MaxWait, or is not to wait.
type Waiter func(rung <-chan struct{}) bool

// telling is what a namespace tells.
type telling struct {
	bell bell       // rung by each commit that may make news
	mu   sync.Mutex // one poll is prepared at a time; guards what follows
	host *directory.Host
	open map[placement.Shard]*Set // of which it tells, by home
	// unread is when sets could not be read, by home, of which nothing is told until untoldRest is over.
	unread map[placement.Shard]time.Time
	// reading is read beside polls; nil: no set is.
	reading *Set
	read    placement.Shard // the last one read so
}

// noted are the indices of a set that have changed since the set was told of.
type noted struct {
	mu      sync.Mutex               // guards what follows
	indices map[dbadapter.Index]bool // whether there is a record now
	many    bool                     // more than are noted
	records int                      // of the set, when it was told of last
	beside  bool                     // it is being read beside polls
}

// note notes what of changes has come or gone, and reports whether anything has.
func (n *noted) note(changes []dbadapter.Change) (any bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.indices == nil {
		n.indices = map[dbadapter.Index]bool{}
	}
	for i := range changes {
		if c := &changes[i]; (c.Old == 0) != (c.New == 0) { // 0 is that of no record
			if any = true; n.many {
				break
			}
			n.indices[c.Index] = c.New != 0
		}
	}
	most := readAtOnce
	if n.beside {
		most = maxBeside
	}
	if len(n.indices) > max(maxNoted, min(n.records/8, most)) {
		n.indices, n.many = nil, true
	}
	return any
}

// take takes what is noted of a set that has so many records by now.
func (n *noted) take(records int) (indices map[dbadapter.Index]bool, many bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	indices, many = n.indices, n.many
	n.indices, n.many, n.records = nil, false, records
	return indices, many
}

// begin forgets what is noted, as all of the set is about to be read, which has so many records.
func (n *noted) begin(records int, beside bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.indices, n.many, n.records, n.beside = nil, false, records, beside
}

// takeMany is take where more is noted than a poll is to tell; else it takes nothing. missed: more has changed
// than is noted.
func (n *noted) takeMany(records int) (indices map[dbadapter.Index]bool, missed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.many || len(n.indices) <= maxNoted {
		return nil, n.many
	}
	indices, n.indices, n.records = n.indices, nil, records
	return indices, false
}

// end ends a reading beside polls.
func (n *noted) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beside = false
}

// again notes that the set is to be told anew.
func (n *noted) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.indices, n.many = nil, true
}

// Tell answers a message of the feed, as a host; nil: it does not
// tell of the set that a take is about. A poll that may wait waits by wait; nil: it is answered at once.
func (ns *Namespace) Tell(ctx context.Context, m directory.Message, wait Waiter) (directory.Message, error) {
	if !ns.Located() {
		return nil, fmt.Errorf("%w: the namespace has no locator", reconcile.ErrProtocol)
	}
	p, polls := m.(*directory.Poll)
	for waits := polls && p.Wait && wait != nil; waits; {
		rung := ns.telling.bell.listen() // before the look
		answer, idle, err := ns.tellNow(ctx, m, true)
		if err != nil || !idle {
			return answer, err
		}
		waits = wait(rung)
	}
	answer, _, err := ns.tellNow(ctx, m, false)
	return answer, err
}

// tellNow is Tell without a wait. idle: the poll may wait, and there is no news to answer it with.
func (ns *Namespace) tellNow(ctx context.Context, m directory.Message, waits bool) (answer directory.Message, idle bool, err error) {
	t := &ns.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.host == nil {
		var log [8]byte
		ns.node.random(log[:], ForNonce)
		t.host = directory.NewHost(ns.rule.Shards, binary.BigEndian.Uint64(log[:])|1)
		t.open, t.unread = map[placement.Shard]*Set{}, map[placement.Shard]time.Time{}
	}
	switch m := m.(type) {
	case *directory.Poll:
		if err := ns.catchUp(ctx); err != nil {
			return nil, false, err
		}
		if waits && t.host.Idle(m) {
			return nil, true, nil
		}
		return t.host.News(m), false, nil
	case *directory.Take:
		if b, err := t.host.Block(m); err == nil {
			answer = b
		} // else nil is the answer: it does not tell of the set
		return answer, false, nil
	}
	return nil, false, fmt.Errorf("%w: a message of the feed that asks nothing", reconcile.ErrProtocol)
}

// layoutMark stands for a layout that counts, as the feed tells it: the first 8 bytes of
// its table's hash, plus its epoch, since one between two of the same table may have had further hosts; 0 for none.
func layoutMark(p *placed) uint64 {
	if p.layout == nil {
		return 0
	}
	table := p.layout.Table()
	return binary.BigEndian.Uint64(table[:]) + p.stated.Epoch
}

// feed answers a message of the feed.
func (r *Routed) feed(ctx context.Context, q *wire.AskFeed, wait Waiter) (*wire.FeedAnswer, error) {
	if !r.ns.Located() {
		return nil, fmt.Errorf("%w: the namespace has no locator", reconcile.ErrProtocol)
	}
	m, err := directory.Parse(q.Message, r.ns.rule.Shards)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	answer, err := r.ns.Tell(ctx, m, r.waiter(wait))
	if err == nil {
		err = r.ns.answers(r.remote, r.ns.peerPaused) // it may have waited
	}
	if err != nil || answer == nil {
		return &wire.FeedAnswer{}, err
	}
	data, err := directory.Append(nil, answer, r.ns.rule.Shards)
	return &wire.FeedAnswer{Message: data}, err
}

// waiter lets the question wait in a place of its own kind: it takes none of those that are answered.
func (r *Routed) waiter(wait Waiter) Waiter {
	if wait == nil {
		return nil
	}
	parked := false
	return func(rung <-chan struct{}) bool {
		if !parked {
			release, ok := r.ns.node.Sessions.asked.park(r.remote)
			if !ok {
				return false
			}
			r.done()
			parked, r.done = true, release
		}
		return wait(rung)
	}
}

// AskFeed asks a host for its feed.
func (ns *Namespace) AskFeed(remote ID, m directory.Message) (*wire.Ask, error) {
	data, err := directory.Append(nil, m, ns.rule.Shards)
	if err != nil {
		return nil, err
	}
	return (&Asker{ns: ns}).Begin(remote, &wire.AskFeed{Message: data})
}

// Feed is what a message of the peer answers to AskFeed; nil: it does not tell of the set.
func (ns *Namespace) Feed(remote ID, ask *wire.Ask, m wire.Message) (directory.Message, error) {
	reply, err := (&Asker{ns: ns}).reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	data := reply.Answer.(*wire.FeedAnswer).Message // CheckReply has compared the subjects
	if len(data) == 0 {
		return nil, nil //nolint:nilnil // that is the answer
	}
	answer, err := directory.Parse(data, ns.rule.Shards)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	return answer, nil
}
