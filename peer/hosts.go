package peer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// hosts is the network of a namespace's shards, as package shards sees it.
type hosts struct{ ns *Namespace }

// newShards are the shards of a namespace that is cut into some.
func newShards(ns *Namespace) *shards.Shards {
	s := &shards.Shards{NS: ns.core, Net: hosts{ns}, Random: rand.Int64N}
	paging := ns.node.routing.paging
	s.Paging = func(ctx context.Context) (leave func(), err error) { return func() { <-paging }, enter(ctx, paging) }
	return s
}

func (h hosts) Now() time.Duration { return h.ns.node.awake.Elapsed() }

func (h hosts) Connected(id node.ID) bool { return h.ns.node.host.Connected(ID(id)) }

func (h hosts) Ask(ctx context.Context, to node.ID, q wire.Question) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	n, id := h.ns.node, ID(to)
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	leave, err := n.placeFor(ctx, id, q)
	if err != nil {
		return nil, nil, false, err
	}
	defer leave()
	n.metrics.Routed(q)
	ask, m, sent, err = n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return h.ns.core.Ask(id, q) })
	if _, refused := m.(*wire.Refuse); refused {
		n.metrics.RouteRefused()
	}
	if err != nil && !errors.Is(err, ErrUnreachable) && ctx.Err() != nil {
		err = errors.Join(ErrUnreachable, err)
	}
	return ask, m, sent, err
}

// askPatience is how long a question may take; a page of a scan over a slow link takes longest.
const askPatience = 30 * time.Second

func (h hosts) SyncLists(ctx context.Context, with node.ID) error {
	ctx, cancel := context.WithTimeout(ctx, shards.Patience)
	defer cancel()
	done := h.ns.listSyncs.DoChan(string(with), func() (any, error) {
		ctx, cancel := context.WithTimeout(h.ns.ctx, shards.Patience) // others may wait for it longer than this one
		defer cancel()
		return h.ns.sync(ctx, nil, ID(with), SyncOptions{})
	})
	select {
	case of := <-done:
		return of.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h hosts) Go(ctx context.Context, f func(ctx context.Context)) {
	if !h.ns.gate.enter() {
		return // the namespace closes: its context is over, too
	}
	go func() {
		defer h.ns.gate.leave()
		f(ctx)
	}()
}

func (h hosts) Outlive(f func(ctx context.Context)) {
	h.Go(h.ns.ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 2*shards.Patience)
		defer cancel()
		f(ctx)
	})
}

func (hosts) Sleep(ctx context.Context, d time.Duration) error {
	if !sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

func (h hosts) Changed(ctx context.Context, set *node.Set, behind uint64, d time.Duration) error {
	sh := h.ns.node.shard(set)
	if sh == nil { // it is being opened, or was left
		return h.Sleep(ctx, d)
	}
	return sh.feed.Wait(ctx, behind, d)
}

func (h hosts) Mailbox() shards.Mailbox {
	return &mailbox{now: h.ns.node.awake.Elapsed, ready: make(chan struct{}, 1)}
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
	wake(m.ready)
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
	timer := time.NewTimer(until - m.now())
	defer timer.Stop()
	for {
		if note := m.next(); note != nil {
			return note
		}
		select {
		case <-m.ready:
		case <-timer.C:
			return m.next()
		case <-ctx.Done():
			return nil
		}
	}
}
