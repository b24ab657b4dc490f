package routing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/singleflight"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// patience is how long a question may take; a page of a scan over a slow link takes longest.
const patience = 30 * time.Second

// Config is what a Net knows of its namespace and its node. All are needed.
type Config struct {
	Routes *Routes
	NS     *node.Namespace
	// Life is over when the namespace closes.
	Life context.Context
	// Enter begins a use of the namespace; false: it closes, and Life is over, too.
	Enter func() (leave func(), ok bool)
	// Elapsed is a time that goes on while the machine sleeps.
	Elapsed   func() time.Duration
	Connected func(node.ID) bool
	// SyncLists makes the list of members equal with a member's.
	SyncLists func(ctx context.Context, with node.ID) error
	// Feed is what tells of changes to a set; nil: it is being opened, or was left.
	Feed func(*node.Set) *changes.Feed
	// Routed counts a question, and Refused one that was refused.
	Routed  func(wire.Question)
	Refused func()
}

// Net is the network of a namespace's shards.
type Net struct {
	cfg Config
	// syncs are the syncs of the list of members that reads and writes wait for, by peer.
	syncs singleflight.Group
}

// NewNet makes the network of a namespace that is cut into shards.
func NewNet(cfg Config) *Net { return &Net{cfg: cfg} }

// Now implements shards.Net.
func (n *Net) Now() time.Duration { return n.cfg.Elapsed() }

// Connected implements shards.Net.
func (n *Net) Connected(id node.ID) bool { return n.cfg.Connected(id) }

// Ask implements shards.Net. ErrBusy: too many writes wait for a place at the peer.
func (n *Net) Ask(ctx context.Context, to node.ID, q wire.Question) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leave, err := n.cfg.Routes.place(ctx, to, q)
	if err != nil {
		return nil, nil, false, err
	}
	defer leave()
	n.cfg.Routed(q)
	if ask, err = n.cfg.NS.Ask(to, q); err == nil { // before a dial
		m, sent, err = n.cfg.Routes.pool.Exchange(ctx, peer.ID(to), wire.Append(nil, ask))
	}
	if _, refused := m.(*wire.Refuse); refused {
		n.cfg.Refused()
	}
	if err != nil && !errors.Is(err, reconcile.ErrUnreachable) && ctx.Err() != nil {
		err = errors.Join(reconcile.ErrUnreachable, err)
	}
	return ask, m, sent, err
}

// SyncLists implements shards.Net.
func (n *Net) SyncLists(ctx context.Context, with node.ID) error {
	ctx, cancel := context.WithTimeout(ctx, shards.Patience)
	defer cancel()
	done := n.syncs.DoChan(string(with), func() (any, error) {
		ctx, cancel := context.WithTimeout(n.cfg.Life, shards.Patience) // others may wait for it longer than this one
		defer cancel()
		return nil, n.cfg.SyncLists(ctx, with)
	})
	select {
	case of := <-done:
		return of.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Go implements shards.Net.
func (n *Net) Go(ctx context.Context, f func(ctx context.Context)) bool {
	leave, ok := n.cfg.Enter()
	if !ok {
		return false
	}
	go func() {
		defer leave()
		f(ctx)
	}()
	return true
}

// Outlive implements shards.Net.
func (n *Net) Outlive(f func(ctx context.Context)) {
	n.Go(n.cfg.Life, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 2*shards.Patience)
		defer cancel()
		f(ctx)
	})
}

// Sleep implements shards.Net.
func (n *Net) Sleep(ctx context.Context, d time.Duration) error { return machine.Sleep(ctx, d) }

// Changed implements shards.Net.
func (n *Net) Changed(ctx context.Context, set *node.Set, behind uint64, d time.Duration) error {
	if feed := n.cfg.Feed(set); feed != nil {
		return feed.Wait(ctx, behind, d)
	}
	return n.Sleep(ctx, d)
}

// Mailbox implements shards.Net.
func (n *Net) Mailbox() shards.Mailbox {
	return &mailbox{now: n.cfg.Elapsed, ready: make(chan struct{}, 1)}
}

// mailbox hands notes to one taker.
type mailbox struct {
	now   func() time.Duration
	ready chan struct{} // has a token while there are notes

	mu    sync.Mutex // guards what follows
	notes []func()
}

func (m *mailbox) Put(note func()) {
	m.mu.Lock()
	m.notes = append(m.notes, note)
	m.mu.Unlock()
	machine.Wake(m.ready)
}

func (m *mailbox) next() (note func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.notes) > 0 {
		note, m.notes = m.notes[0], m.notes[1:]
	}
	return note
}

func (m *mailbox) Take(ctx context.Context, until time.Duration) func() {
	over := time.After(until - m.now())
	for {
		if note := m.next(); note != nil {
			return note
		}
		select {
		case <-m.ready:
		case <-over:
			return m.next()
		case <-ctx.Done():
			return nil
		}
	}
}
