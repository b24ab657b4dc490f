package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// ErrUnconfirmed: a wait was over before as many members as asked for held what it waited
// for. What this node has written stays written.
var ErrUnconfirmed = errors.New("not confirmed by as many members as asked for")

// WaitOptions say what to wait for. The zero value waits until all other members hold what
// this node holds.
type WaitOptions struct {
	// Peers are the members that are asked; without any, all others that have not lapsed.
	Peers []ID
	// Count is how many of these are enough; 0 means all.
	Count int
	// Key, if not nil, narrows the wait to one key: to Version of it, or where that is
	// zero, to the one that this node holds.
	Key     []byte
	Version dbadapter.Version
}

// Unconfirmed is a member that was not heard to hold what a wait waited for.
type Unconfirmed struct {
	Peer ID
	// Why says what it answered last, or why it did not.
	Why string
}

// Waited is what a wait has found.
type Waited struct {
	// Held are the members that hold it, durably.
	Held []ID
	// Missing are the others that were asked.
	Missing []Unconfirmed
}

// The pauses between two tries with a member, and how long it is left to pushes before
// a sync is begun.
const (
	waitPause    = 250 * time.Millisecond
	waitPauseMax = 5 * time.Second
	pushPatience = time.Second
)

// Wait waits until members hold, durably, what this node held when the wait began, or
// later versions of it. A member is asked whether it does, and answers as soon as that is
// so, as pushes bring it there; of a wait for everything a sync follows if that takes
// long. When the context is over first, the error is ErrUnconfirmed, and what was found
// stands beside it.
func (ns *Namespace) Wait(ctx context.Context, o WaitOptions) (Waited, error) {
	fail := func(w Waited, err error) (Waited, error) {
		return w, fmt.Errorf("wait in %s: %w", ns.Name(), err)
	}
	if err := ns.enter("wait"); err != nil {
		return Waited{}, err
	}
	defer ns.gate.leave()
	named := make([]node.ID, len(o.Peers))
	for i, id := range o.Peers {
		named[i] = node.ID(id)
	}
	w, err := ns.core.NewAwaiting(named, o.Count)
	if err != nil {
		return fail(Waited{}, err)
	}
	try := ns.everythingHeld
	if o.Key != nil {
		q, err := ns.core.VersionQuestion(o.Key, o.Version)
		if err != nil {
			return fail(Waited{}, err)
		}
		try = func(ctx context.Context, id ID) error { return ns.versionHeld(ctx, id, q) }
	}
	over, cancel := ns.bind(ctx)
	defer cancel()
	ns.await(over, cancel, w, try)
	found := waitedOf(w)
	switch {
	case w.Done():
		return found, nil
	case errors.Is(context.Cause(over), ErrClosed):
		return fail(found, ErrClosed)
	}
	return fail(found, fmt.Errorf("%w: %s", ErrUnconfirmed, found.words(w.Need())))
}

// WaitFor waits until so many other members hold a version of a key, or a later one,
// durably. See Wait.
func (ns *Namespace) WaitFor(ctx context.Context, key []byte, v dbadapter.Version, members int) (Waited, error) {
	return ns.Wait(ctx, WaitOptions{Key: key, Version: v, Count: members})
}

// MayWait says what forbids a wait for so many members, before anything is written.
func (ns *Namespace) MayWait(members int) error {
	if _, err := ns.core.NewAwaiting(nil, members); err != nil {
		return fmt.Errorf("wait in %s: %w", ns.Name(), err)
	}
	return nil
}

// await asks the members until as many hold it as are asked for, or the context is over.
// It returns when no question is under way any more.
func (ns *Namespace) await(ctx context.Context, cancel func(), w *node.Awaiting, try func(context.Context, ID) error) {
	var mu sync.Mutex // guards w
	heard := func(id ID, err error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil || err == nil { // a question that was cut says nothing
			w.Heard(node.ID(id), err)
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
		asking.Go(func() {
			for pause := waitPause; ctx.Err() == nil; pause = min(2*pause, waitPauseMax) {
				begun := time.Now()
				err := try(ctx, ID(id))
				heard(ID(id), err)
				if err == nil || !sleep(ctx, max(0, pause-time.Since(begun))) {
					return
				}
			}
		})
	}
	asking.Wait()
}

// versionHeld is nil once a peer holds a version. Where no push brings it there soon, a
// sync does.
func (ns *Namespace) versionHeld(ctx context.Context, id ID, q *wire.AskKey) error {
	for carried := false; ; carried = true {
		a, err := ns.ask(ctx, id, pushPatience, q)
		if err != nil {
			return err
		}
		missing := ns.core.Confirms(node.ID(id), q, a.Reply)
		if answer, ok := a.Answer.(*wire.KeyAnswer); missing == nil || carried || ok && answer.Declines != 0 {
			return missing
		}
		if err := ns.carry(ctx, id); err != nil {
			return fmt.Errorf("%w; a sync: %w", missing, err)
		}
	}
}

// everythingHeld is nil once a peer holds what this node holds now, be it by a sync.
func (ns *Namespace) everythingHeld(ctx context.Context, id ID) error {
	q := ns.core.SetQuestion()
	a, err := ns.ask(ctx, id, pushPatience, q)
	if err != nil {
		return err
	}
	if node.ConfirmsSet(q, a.Reply) == nil {
		return nil
	}
	report, err := ns.Sync(ctx, id, SyncOptions{})
	if err == nil && !report.Verified {
		err = ErrNotVerified
	}
	return err
}

// carrying are the syncs that waits for a version have begun, one with a peer at a time:
// many waits need no more.
type carrying struct {
	mu sync.Mutex
	of map[ID]chan struct{} // closed at the end
}

// carry syncs with a peer, or waits for the end of such a sync, which may have begun before
// what is to be carried was written. Records that are declined are no failure here: the
// question about the version tells.
func (ns *Namespace) carry(ctx context.Context, id ID) error {
	c := &ns.carrying
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
	_, err := ns.Sync(ctx, id, SyncOptions{})
	if errors.Is(err, ErrRejected) {
		return nil
	}
	return err
}

func waitedOf(w *node.Awaiting) Waited {
	held, missing, why := w.Result()
	out := Waited{Held: []ID{}, Missing: []Unconfirmed{}}
	for _, id := range held {
		out.Held = append(out.Held, ID(id))
	}
	for _, id := range missing {
		text := "no answer yet"
		if err := why[id]; err != nil {
			text = err.Error()
		}
		out.Missing = append(out.Missing, Unconfirmed{ID(id), text})
	}
	return out
}

// words say what is missing, on one line.
func (w *Waited) words(need int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d hold it", len(w.Held), need)
	for _, m := range w.Missing {
		fmt.Fprintf(&b, "; %s: %s", m.Peer, m.Why)
	}
	return b.String()
}
