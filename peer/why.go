package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
)

// whyPatience bounds the question to one peer: connecting, and the answer.
const whyPatience = 15 * time.Second

// Why asks members what they hold under a key, and explains how that compares with what
// this node holds. It asks the peers named, or all other members, all at the same time.
// A peer that does not answer has StandingUnknown, and a cause.
func (ns *Namespace) Why(ctx context.Context, key []byte, peers ...ID) ([]status.Why, error) {
	if err := ns.enter("ask why"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	fail := func(err error) ([]status.Why, error) {
		return nil, fmt.Errorf("why %q in %s: %w", clip(key), ns.Name(), err)
	}
	if ns.core.Bodied() {
		if err := ns.hosts.CheckKey(key); err != nil {
			return fail(err)
		}
	}
	sh, err := ns.atHost(ns.shardOf(key))
	if err != nil {
		return fail(ns.orRemoved(err))
	}
	q, err := ask.HeldQuestion(sh.set, key)
	if err != nil {
		return fail(err)
	}
	named := len(peers) > 0
	if !named {
		for _, m := range ns.core.Members().Members() {
			if id := ID(m.ID); id != ns.node.self.id && sh.set.With(m.ID) {
				peers = append(peers, id)
			}
		}
	}
	all, away := make([]status.Why, len(peers)), make([]bool, len(peers))
	places := make([]int, len(peers))
	for i := range places {
		places[i] = i
	}
	some(asked, places, func(i int) bool { return ns.node.host.Connected(peers[i]) }, func(i int) {
		id := peers[i]
		limited, cancel := context.WithTimeoutCause(ctx, whyPatience, fmt.Errorf("%w: no answer in %s", ErrUnreachable, whyPatience))
		defer cancel()
		a, err := sh.ask(limited, id, 0, q)
		var w status.Why
		if err == nil {
			w, err = ask.Explain(sh.set, node.ID(id), q, a.Reply)
		}
		if errors.Is(err, ErrDenied) && ns.core.Rule() != nil && ns.core.Outside() == nil {
			away[i] = true
			err = fmt.Errorf("it does not hold the key's shard, or not yet; or it has not heard that this node is a member: %w", ErrBusy)
		}
		if err != nil {
			w = ask.Unanswered(sh.set, node.ID(id), q, err)
		}
		all[i] = status.Why{
			Peer: id, Standing: w.Standing, Causes: w.Causes, Here: w.Here.Clone(), There: w.There.Clone(),
			Asked: ns.node.now().UTC(), Verified: sh.verified.With(id).At,
		}
	})
	if err := context.Cause(ctx); err != nil {
		return fail(err)
	}
	if named {
		return all, nil
	}
	row := ns.core.Row(ns.core.Home(key)) // nil: no layout is known
	var told []status.Why
	for i := range all {
		if !away[i] || row != nil && row.IsHost(node.ID(all[i].Peer)) { // a host of before has handed the shard over
			told = append(told, all[i])
		}
	}
	return told, nil
}

// asked is how many peers are asked at once: what a question takes is mostly waiting, and
// each may want a dial.
const asked = 32

// some calls do for each, so many at a time and those first that are near. What has to be
// dialled, and may not answer, does not hold up what answers at once.
func some(most int, all []int, near func(int) bool, do func(int)) {
	var first, then []int
	for _, i := range all {
		if near(i) {
			first = append(first, i)
		} else {
			then = append(then, i)
		}
	}
	all = append(first, then...)
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(most, len(all)) {
		running.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(all)); n = next.Add(1) - 1 {
				do(all[n])
			}
		})
	}
	running.Wait()
}
