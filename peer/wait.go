package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// WaitOptions say what to wait for. The zero value waits until all other members hold what
// this node holds.
type WaitOptions struct {
	// Peers are the members that are asked; without any, all others that have not lapsed.
	Peers []ID
	// Count is how many of these are enough; 0 means all.
	Count int
	// Key, if not nil, narrows the wait to one key. It is for Version of it or, where
	// that is zero, for the one that this node holds.
	Key     []byte
	Version dbadapter.Version
}

// Wait waits until members hold, durably, what this node held when the wait began, or
// later versions of it. A member is asked whether it does, and answers as soon as that is
// so, as pushes bring it there. In a wait for everything a sync begins if that takes long.
// When the context is over first, the error is ErrUnconfirmed, and what was found
// is returned with it.
//
// In a namespace that is cut into shards the members that count are the other hosts of a
// shard, by the layout when the wait begins. A wait for a key is for the hosts of its shard,
// all or Count of them. Without a Version, it is for what a read finds here. A host that
// lacks the record is given it. A wait for everything is for each shard that this node holds.
// It lasts until the shard's other hosts, or Count of them, hold what this node holds of it.
// What this node wrote to other shards is not here. It is waited for by its key, or as it is
// written (Ack).
func (ns *Namespace) Wait(ctx context.Context, o WaitOptions) (status.Waited, error) {
	fail := func(w status.Waited, err error) (status.Waited, error) {
		return w, fmt.Errorf("wait in %s: %w", ns.Name(), err)
	}
	if err := ns.enter("wait"); err != nil {
		return status.Waited{}, err
	}
	defer ns.gate.leave()
	if ns.core.Rule() != nil {
		w, err := ns.waitShards(ctx, &o)
		if err != nil {
			return fail(w, err)
		}
		return w, nil
	}
	named := make([]node.ID, len(o.Peers))
	for i, id := range o.Peers {
		named[i] = node.ID(id)
	}
	w, err := ask.NewAwaiting(ns.core, named, o.Count)
	if err != nil {
		return fail(status.Waited{}, err)
	}
	sh := ns.shards()[0]
	var about *wire.AskKey // nil: everything
	if o.Key != nil {
		sh, about, err = ns.versionQuestion(o.Key, o.Version)
	}
	if err != nil {
		return fail(status.Waited{}, err)
	}
	over, cancel := ns.bind(ctx)
	defer cancel()
	sh.await(over, cancel, w, about)
	found := waitedOf(w)
	switch {
	case w.Done():
		return found, nil
	case errors.Is(context.Cause(over), ErrClosed):
		return fail(found, ErrClosed)
	}
	return fail(found, fmt.Errorf("%w: %s", ErrUnconfirmed, words(&found, w.Need())))
}

// versionQuestion asks the members of a key's shard for a version.
func (ns *Namespace) versionQuestion(key []byte, v dbadapter.Version) (*shard, *wire.AskKey, error) {
	sh, err := ns.shardOf(key)
	if err != nil {
		return nil, nil, err
	}
	q, err := ask.VersionQuestion(sh.set, key, v)
	return sh, q, err
}

// await asks the members until as many hold it as are asked for, or the context is over.
// It returns when no question is under way any more.
func (sh *shard) await(ctx context.Context, cancel func(), w *ask.Awaiting, about *wire.AskKey) {
	var mu sync.Mutex // guards w
	heard := func(id node.ID, err error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil || err == nil { // a question that was cut says nothing
			w.Heard(id, err)
		}
		if w.Done() {
			cancel()
		}
	}
	if w.Done() {
		return
	}
	var asking sync.WaitGroup
	for _, id := range w.Of() {
		asking.Go(func() { ask.Await(ctx, waiting{sh}, sh.set, id, about, func(err error) { heard(id, err) }) })
	}
	asking.Wait()
}

// waiting is the network of a shard's waits, as package ask sees it.
type waiting struct{ sh *shard }

func (w waiting) Now() time.Duration { return w.sh.ns.node.awake.Elapsed() }

func (w waiting) Ask(ctx context.Context, id node.ID, patience time.Duration, q wire.Question) (*wire.Reply, error) {
	a, err := w.sh.ask(ctx, ID(id), patience, q)
	return a.Reply, err
}

func (w waiting) Sync(ctx context.Context, id node.ID, shared bool) (verified bool, err error) {
	if shared {
		return false, w.sh.carry(ctx, ID(id))
	}
	report, err := w.sh.sync(ctx, ID(id), SyncOptions{})
	return report.Verified, err
}

func (w waiting) Sleep(ctx context.Context, d time.Duration) error {
	if !sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// carrying are the syncs that waits for a version have begun. There is one with a peer
// at a time: many waits need no more.
type carrying struct {
	mu sync.Mutex
	of map[ID]chan struct{} // closed at the end
}

// carry syncs with a peer, or waits for the end of such a sync. That one may have begun
// before what is to be carried was written.
func (sh *shard) carry(ctx context.Context, id ID) error {
	c := &sh.carrying
	c.mu.Lock()
	if other := c.of[id]; other != nil {
		c.mu.Unlock()
		select {
		case <-other:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if c.of == nil {
		c.of = map[ID]chan struct{}{}
	}
	over := make(chan struct{})
	c.of[id] = over
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.of, id)
		close(over)
	}()
	_, err := sh.sync(ctx, id, SyncOptions{})
	return err
}

func waitedOf(w *ask.Awaiting) status.Waited {
	held, missing, why := w.Result()
	out := status.Waited{Held: []ID{}, Missing: []status.Unconfirmed{}}
	for _, id := range held {
		out.Held = append(out.Held, ID(id))
	}
	for _, id := range missing {
		text := "no answer yet"
		if err := why[id]; err != nil {
			text = err.Error()
		}
		out.Missing = append(out.Missing, status.Unconfirmed{Peer: ID(id), Why: text})
	}
	return out
}

// words say what is missing, on one line.
func words(w *status.Waited, need int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d hold it", len(w.Held), need)
	for _, m := range w.Missing {
		fmt.Fprintf(&b, "; %s: %s", m.Peer, m.Why)
	}
	return b.String()
}
