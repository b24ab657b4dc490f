package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// HeldQuestion is the question about a key, with what is held under it here.
func HeldQuestion(set *node.Set, key []byte) (*wire.AskKey, error) {
	if len(key) == 0 || len(key) > dbadapter.MaxKey {
		return nil, fmt.Errorf("%w: a key of %d bytes; it has 1 to %d", node.ErrInvalid, len(key), dbadapter.MaxKey)
	}
	bucket, err := bucketOf(set, set.Keys.Hasher.Index(key))
	if err != nil {
		return nil, err
	}
	held := under(bucket, key)
	if held == nil {
		return &wire.AskKey{Held: dbadapter.Record{Key: key}}, nil
	}
	return &wire.AskKey{Held: head(held), Digest: held.Digest}, nil
}

// whyPatience bounds the question to one peer: connecting, and the answer.
const whyPatience = 15 * time.Second

// Why asks members what they hold under a key, and explains how that compares with what this node holds. It asks
// those that are named, or all others that hold the set.
func (q *Inquiry) Why(ctx context.Context, set *node.Set, key []byte, named []node.ID) ([]status.Why, error) {
	question, err := HeldQuestion(set, key)
	if err != nil {
		return nil, err
	}
	ns, of := set.Namespace(), named
	if len(named) == 0 {
		for _, m := range ns.Members().Members() {
			if m.ID != ns.Self() && set.With(m.ID) {
				of = append(of, m.ID)
			}
		}
	}
	all, away := make([]status.Why, len(of)), make([]bool, len(of))
	each(len(of), func(i int) bool { return q.Near(of[i]) }, func(i int) {
		limited, cancel := context.WithTimeoutCause(ctx, whyPatience, fmt.Errorf("%w: no answer in %s", reconcile.ErrUnreachable, whyPatience))
		defer cancel()
		a, err := q.Ask(limited, set, of[i], question)
		var w status.Why
		if err == nil {
			w, err = Explain(set, of[i], question, a.Reply)
		}
		if errors.Is(err, reconcile.ErrDenied) && ns.Rule() != nil && ns.Outside() == nil {
			away[i] = true
			err = fmt.Errorf("it does not hold the key's shard, or not yet; or it has not heard that this node is a member: %w", reconcile.ErrBusy)
		}
		if err != nil {
			w = Unanswered(set, of[i], question, err)
		}
		w.Peer, w.Here, w.There, w.Asked = status.ID(of[i]), w.Here.Clone(), w.There.Clone(), ns.Time().UTC()
		all[i] = w
	})
	if err := context.Cause(ctx); err != nil || len(named) > 0 {
		return all, err
	}
	row := ns.Row(ns.Home(key)) // nil: no layout is known
	var answered []status.Why
	for i := range all {
		if !away[i] || row != nil && row.IsHost(of[i]) { // a host of before has handed the shard over
			answered = append(answered, all[i])
		}
	}
	return answered, nil
}

// Explain explains what a peer has answered to the question.
func Explain(set *node.Set, remote node.ID, q *wire.AskKey, reply *wire.Reply) (status.Why, error) {
	answer, ok := reply.Answer.(*wire.KeyAnswer)
	if !ok {
		return status.Why{}, fmt.Errorf("%w: an answer about %d", reconcile.ErrProtocol, reply.Subject)
	}
	w := local(set, remote, q)
	w.There = answer.Held
	here, there := !w.Here.Version.IsZero(), !w.There.Version.IsZero()
	order := w.Here.Version.Compare(w.There.Version)
	switch {
	case there && string(w.There.Key) != string(q.Held.Key):
		return status.Why{}, fmt.Errorf("%w: an answer about another key", reconcile.ErrProtocol)
	case !here && !there:
		w.Standing = status.StandingNeither
	case !there:
		w.Standing = status.Standing(reconcile.MissingThere.String())
	case !here:
		w.Standing = status.Standing(reconcile.MissingHere.String())
	case q.Digest == answer.Digest:
		w.Standing = status.StandingSame
	case order > 0:
		w.Standing = status.Standing(reconcile.NewerHere.String())
	case order < 0:
		w.Standing = status.Standing(reconcile.NewerThere.String())
	default:
		w.Standing = status.StandingTwoContents
	}
	if reply.Greeting.List != set.Lists() {
		w.Add(status.CauseLists, 0, "the two have different lists of members, which a sync makes equal first")
	}
	if w.Standing == status.StandingSame || w.Standing == status.StandingNeither {
		return w, nil
	}
	declined := declinedThere(&w, reply.Greeting.Floor, answer.Declines)
	if !here || order < 0 {
		why, err := declinedHere(set, remote, reply.Greeting.Floor, &w, answer.Digest)
		if err != nil {
			return status.Why{}, err
		}
		declined = declined || why
	}
	greater, less := &w.Here, &w.There
	if order < 0 {
		greater, less = less, greater
	}
	if here && there && order != 0 && !greater.Supersedes(less.Version) {
		w.Add(status.CauseConflict, 0, "version %s was written without knowledge of version %s, which gives way to it and is kept as a conflict where it was held", greater.Version, less.Version)
	}
	if !declined && w.Standing != status.StandingTwoContents {
		declined = declinedBefore(set, remote, reply.Greeting.List, q, answer, &w)
	}
	if !declined {
		w.Add(status.CauseNotSynced, 0, "no sync of the two has carried version %s yet", greater.Version)
	}
	return w, nil
}

// declinedThere notes why the peer declines what this node holds.
func declinedThere(w *status.Why, floor dbadapter.Timestamp, rule wire.Reason) bool {
	due, ends := w.Here.Due()
	switch {
	case rule == 0:
		return false
	case rule == wire.ReasonFloor && ends && floor != watermark.NoFloor && due <= floor:
		w.Add(status.CauseCollectedThere, rule, "the peer has collected what was deleted or had expired up to %s, and this with it", when(floor))
	case rule == wire.ReasonFloor && floor != watermark.NoFloor:
		w.Add(status.CauseDeclinedThere, rule, "the peer lets no record in that it does not hold and that is not later than %s, up to when it has collected what was deleted: write it again, or see syncd rejected there", when(floor))
	default:
		w.Add(status.CauseDeclinedThere, rule, "the peer declines version %s: %s", w.Here.Version, rule)
	}
	return true
}

// declinedBefore notes that the other side has declined the greater version. The
// side that holds it does not offer it with the next sync.
func declinedBefore(set *node.Set, remote node.ID, list roster.Digest, q *wire.AskKey, a *wire.KeyAnswer, w *status.Why) bool {
	if w.Here.Version.Compare(w.There.Version) < 0 {
		if a.Declined == 0 {
			return false
		}
		rest := time.Duration(a.Rest) * time.Millisecond
		w.Add(status.CauseRests, a.Declined, "this node has declined version %s: %s; the peer offers it again in %s", w.There.Version, here[a.Declined], rest)
		return true
	}
	rule, rest := set.RestsWith(remote, list, &w.Here, q.Digest)
	if rule == 0 {
		return false
	}
	w.Add(status.CauseRests, rule, "the peer has declined version %s: %s; this node offers it again in %s", w.Here.Version, rule, rest)
	return true
}

// declinedHere notes why this node declines what the peer holds.
func declinedHere(set *node.Set, remote node.ID, theirs dbadapter.Timestamp, w *status.Why, digest dbadapter.Digest) (bool, error) {
	index := set.Keys.Hasher.Index(w.There.Key)
	bucket, err := bucketOf(set, index)
	if err != nil {
		return false, err
	}
	floor := set.Floor()
	rule := set.Declines(remote, theirs, &dbadapter.Hashed{Record: w.There, Index: index, Digest: digest}, bucket)
	due, ends := w.There.Due()
	switch {
	case rule == 0:
		return false, nil
	case rule == wire.ReasonFloor && ends && due <= floor:
		w.Add(status.CauseCollectedHere, rule, "this node has collected what was deleted or had expired up to %s, and this with it", when(floor))
	default:
		w.Add(status.CauseDeclinedHere, rule, "this node declines version %s: %s; syncd rejected lists it once a sync has offered it", w.There.Version, here[rule])
	}
	return true, nil
}

// here are the reasons as the node says them of itself.
var here = map[wire.Reason]string{
	wire.ReasonClock:     "its time lies in the future by this node's clock, or before 2020",
	wire.ReasonSignature: "its signature does not fit",
	wire.ReasonWriter:    "its writer may not write, as far as this node knows",
	wire.ReasonFloor:     "it is not later than what has been collected here",
	wire.ReasonFull:      "too many keys share its index here",
	wire.ReasonBody:      "its value was sent too long ago, and may have been collected",
}

// Unanswered explains why a peer did not answer the question.
func Unanswered(set *node.Set, remote node.ID, q *wire.AskKey, err error) status.Why {
	w := local(set, remote, q)
	w.Standing = status.StandingUnknown
	kind := status.CauseFailed
	for _, c := range []struct {
		err  error
		kind status.CauseKind
	}{
		{reconcile.ErrPaused, status.CausePaused},
		{reconcile.ErrDenied, status.CauseDenied},
		{reconcile.ErrBusy, status.CauseBusy},
		{reconcile.ErrUnreachable, status.CauseUnreachable},
	} {
		if errors.Is(err, c.err) {
			kind = c.kind
			break
		}
	}
	w.Add(kind, 0, "%v", err)
	return w
}

// local is what this node knows by itself.
func local(set *node.Set, remote node.ID, q *wire.AskKey) status.Why {
	var w status.Why
	if !q.Held.Version.IsZero() {
		w.Here = q.Held
		if q.Held.Expired(set.Namespace().Time()) {
			w.Add(status.CauseExpired, 0, "the record has expired at %s by this node's clock, and reads as absent", when(q.Held.Expires))
		}
	}
	members := set.Namespace().Members()
	for _, id := range []node.ID{remote, set.Namespace().Self()} {
		if members.Lapsed(id) {
			w.Add(status.CauseLapsed, 0, "%s has lapsed: the others have collected without it, and what it wrote before that they may decline", id)
		}
	}
	return w
}

// when is a reading of a version clock in words.
func when(t dbadapter.Timestamp) string { return t.Time().Format(time.RFC3339) }
