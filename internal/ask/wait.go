package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Awaiting decides when as many members as are asked for hold what a wait waits for.
type Awaiting struct {
	of   []node.ID
	need int
	held map[node.ID]bool
	last map[node.ID]error // why not yet
}

// NewAwaiting begins a wait for count of some members, or for all of them where
// count is 0. Where no members are named, it waits for Others.
func NewAwaiting(ns *node.Namespace, named []node.ID, count int) (*Awaiting, error) {
	of := ns.Others()
	if len(named) > 0 {
		of = slices.Compact(slices.Sorted(slices.Values(named)))
		for _, id := range of {
			if id == ns.Self() || !ns.Admits(id) {
				return nil, fmt.Errorf("%w: %s is not another member of the namespace", node.ErrInvalid, id)
			}
		}
	}
	switch {
	case count < 0:
		return nil, fmt.Errorf("%w: a wait for %d members", node.ErrInvalid, count)
	case count > len(of):
		return nil, fmt.Errorf("%w: a wait for %d members, of whom there are %d beside this node (members that have lapsed do not count unless they are named)", node.ErrInvalid, count, len(of))
	case count == 0:
		count = len(of)
	}
	return &Awaiting{of: of, need: count, held: map[node.ID]bool{}, last: map[node.ID]error{}}, nil
}

// Of are the members to ask.
func (a *Awaiting) Of() []node.ID { return a.of }

// Heard notes what a member said last: err is nil if it holds what is waited for. What it
// holds it does not lose: a later error changes nothing.
func (a *Awaiting) Heard(id node.ID, err error) {
	if err == nil {
		a.held[id] = true
		delete(a.last, id)
	} else if !a.held[id] {
		a.last[id] = err
	}
}

// Done reports whether as many members hold it as are asked for.
func (a *Awaiting) Done() bool { return len(a.held) >= a.need }

// Need is how many members are asked for.
func (a *Awaiting) Need() int { return a.need }

// Run has await ask each member, until as many hold it as are asked for, or the context is over. await is given
// Heard. Run returns when no question is under way any more.
func (a *Awaiting) Run(ctx context.Context, await func(ctx context.Context, id node.ID, heard func(error))) {
	if a.Done() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards a
	var asking sync.WaitGroup
	for _, id := range a.of {
		asking.Go(func() {
			await(ctx, id, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil || err == nil { // a question that was cut says nothing
					a.Heard(id, err)
				}
				if a.Done() {
					cancel()
				}
			})
		})
	}
	asking.Wait()
}

// End lists the members that hold it, and those that were not heard to, with the last reason.
// The error is ErrUnconfirmed where fewer hold it than are asked for.
func (a *Awaiting) End() (status.Waited, error) {
	found := status.Waited{Held: []status.ID{}, Missing: []status.Unconfirmed{}}
	for _, id := range a.of {
		why := "no answer yet"
		if err := a.last[id]; err != nil {
			why = err.Error()
		}
		if a.held[id] {
			found.Held = append(found.Held, status.ID(id))
		} else {
			found.Missing = append(found.Missing, status.Unconfirmed{Peer: status.ID(id), Why: why})
		}
	}
	if a.Done() {
		return found, nil
	}
	return found, Unconfirmed(&found, a.need)
}

// ErrUnconfirmed: fewer members hold what is waited for, or have confirmed a write, than are asked for.
var ErrUnconfirmed = errors.New("not confirmed by as many as asked for")

// Unconfirmed is ErrUnconfirmed with what is missing, on one line.
func Unconfirmed(found *status.Waited, need int) error {
	var b strings.Builder
	for _, m := range found.Missing {
		fmt.Fprintf(&b, "; %s: %s", m.Peer, m.Why)
	}
	return fmt.Errorf("%w: %d of %d hold it%s", ErrUnconfirmed, len(found.Held), need, b.String())
}

// VersionQuestion asks whether a peer holds a version of a key, or a later one.
func VersionQuestion(set *node.Set, key []byte, v dbadapter.Version) (*wire.AskKey, error) {
	q, err := HeldQuestion(set, key)
	switch {
	case err != nil:
		return nil, err
	case v.IsZero() && q.Held.Version.IsZero():
		return nil, fmt.Errorf("%w: this node holds nothing under the key to wait for", dbadapter.ErrNotFound)
	case v.IsZero(), q.Held.Version == v:
		return q, nil
	}
	return &wire.AskKey{Held: dbadapter.Record{Key: key, Version: v}}, nil // overwritten, or collected, since
}

// Confirms is nil if the answer says that the peer holds the version asked about,
// or a later one, or has collected it. Where this node holds the version, the
// peer's content must be the same. Otherwise the error says what the peer holds.
func Confirms(set *node.Set, remote node.ID, q *wire.AskKey, reply *wire.Reply) error {
	w, err := Explain(set, remote, q, reply)
	switch {
	case err != nil:
		return err
	case w.There.Version.IsZero():
	case w.There.Version.Compare(q.Held.Version) > 0, w.Standing == status.StandingSame,
		w.There.Version == q.Held.Version && q.Digest == dbadapter.Digest{}:
		return nil
	}
	why := ""
	for _, c := range w.Causes {
		if c.Kind == status.CauseCollectedThere {
			return nil
		}
		why += "; " + c.Text
	}
	return fmt.Errorf("%w: %s%s", ErrNotThere, w.Standing, why)
}

// SetQuestion asks whether a peer holds the same records as this node.
func SetQuestion(set *node.Set) *wire.AskSet { return &wire.AskSet{Sum: set.Sum()} }

// ConfirmsSet is nil if the answer says that the peer holds what this node held
// when it asked. Two sets of one digest are one set.
func ConfirmsSet(q *wire.AskSet, reply *wire.Reply) error {
	a, ok := reply.Answer.(*wire.SetAnswer)
	if ok && a.Sum == q.Sum {
		return nil
	}
	return fmt.Errorf("%w: the two hold different records", ErrNotThere)
}

// ErrNotThere: a peer has answered, and does not hold what is waited for.
var ErrNotThere = fmt.Errorf("not there yet")

// waitPause and waitPauseMax bound the pauses between two tries with a member. What
// is awaited is left to pushes for pushPatience, before a sync is begun.
const (
	waitPause    = 250 * time.Millisecond
	waitPauseMax = 5 * time.Second
	pushPatience = time.Second
)

// Net is what a wait needs of the program that runs the node.
type Net interface {
	// Now is the time since any moment.
	Now() time.Duration
	// Ask asks a member about the set, which may wait for so long with its answer.
	Ask(ctx context.Context, id node.ID, patience time.Duration, q wire.Question) (*wire.Reply, error)
	// Sync syncs the set with a member, both ways. One that is for a version may be shared with other waits,
	// and may have begun before the version was written.
	Sync(ctx context.Context, id node.ID, shared bool) (verified bool, err error)
	// Sleep waits; it returns early with an error when the context ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// Await asks a member until it holds what is waited for, or the context ends. about is a version, or nil for
// everything. heard is told of each try how it stands, and at the end nil.
func Await(ctx context.Context, net Net, set *node.Set, id node.ID, about *wire.AskKey, heard func(error)) {
	for pause := waitPause; ctx.Err() == nil; pause = min(2*pause, waitPauseMax) {
		begun := net.Now()
		err := try(ctx, net, set, id, about, heard)
		heard(err)
		if err == nil || net.Sleep(ctx, max(0, begun+pause-net.Now())) != nil {
			return
		}
	}
}

// try asks a member, with patience. Where no push brings soon what is awaited, a sync follows. One of everything
// that is verified proves that the member holds it. For a version the question follows once more, since a shared
// sync may have begun before the write; what else was declined is no failure.
func try(ctx context.Context, net Net, set *node.Set, id node.ID, about *wire.AskKey, heard func(error)) error {
	if about == nil {
		q := SetQuestion(set)
		reply, err := net.Ask(ctx, id, pushPatience, q)
		if err != nil {
			return err
		}
		if err = ConfirmsSet(q, reply); err == nil {
			return nil
		}
		heard(err) // it may be the last word
		verified, err := net.Sync(ctx, id, false)
		if err == nil && !verified {
			return reconcile.ErrNotVerified
		}
		return err
	}
	for synced := false; ; synced = true {
		reply, err := net.Ask(ctx, id, pushPatience, about)
		if err != nil {
			return err
		}
		missing := Confirms(set, id, about, reply)
		answer, ok := reply.Answer.(*wire.KeyAnswer)
		if missing == nil || synced || !ok || answer.Declines != 0 {
			return missing
		}
		heard(missing)
		if _, err := net.Sync(ctx, id, true); err != nil && !errors.Is(err, syncing.ErrRejected) {
			return fmt.Errorf("%w; a sync: %w", missing, err)
		}
	}
}
