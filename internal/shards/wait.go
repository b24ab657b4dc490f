package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
)

// A wait in a namespace that is cut into shards is for the hosts of a key's shard. A wait
// for everything is for the hosts of each shard that this node holds.

// shardsAwaited are waited for at the same time.
const shardsAwaited = 16

// otherHosts are the hosts of a shard other than this node, or those of them that are named.
func (s *Shards) otherHosts(shard placement.Shard, named []node.ID) (all []node.ID, err error) {
	row := s.NS.Row(shard)
	if row == nil {
		return nil, node.ErrNoLayout
	}
	for _, id := range row.Hosts() {
		if id != s.NS.Self() && s.NS.Admits(id) && (len(named) == 0 || slices.Contains(named, id)) {
			all = append(all, id)
		}
	}
	return all, nil
}

// notSoMany is the error of a wait for more hosts than there are.
func notSoMany(count, there int, shard placement.Shard) error {
	return fmt.Errorf("%w: a wait for %d hosts of shard %d, of which there are %d beside this node", node.ErrInvalid, count, shard, there)
}

// WaitKey waits until count hosts of a key's shard, or all of them where count is 0, hold a version of it, or a
// later one. Where no version is given it is for what get finds, which is Get.
func (s *Shards) WaitKey(ctx context.Context, key []byte, version dbadapter.Version, named []node.ID, count int, get func(context.Context, []byte, GetOptions) (Found, error)) (none status.Waited, err error) {
	shard := s.NS.Home(key)
	hosts, err := s.otherHosts(shard, named)
	if err != nil {
		return none, err
	}
	for _, id := range named {
		if !slices.Contains(hosts, id) {
			return none, fmt.Errorf("%w: %s is not another host of the key's shard %d, which locate names", node.ErrInvalid, status.ID(id), shard)
		}
	}
	if count > len(hosts) {
		return none, notSoMany(count, len(hosts), shard)
	}
	found, err := get(ctx, key, GetOptions{Level: quorum.Quorum, AtLeast: version, Bare: true})
	switch {
	case err != nil && version.IsZero():
		return none, err
	case found.Record == nil && version.IsZero():
		return none, fmt.Errorf("%w: there is nothing under the key to wait for", dbadapter.ErrNotFound)
	case version.IsZero():
		version = found.Record.Version
	}
	if len(hosts) == 0 { // this node is the only host
		return status.Waited{Held: []status.ID{}, Missing: []status.Unconfirmed{}}, nil
	}
	w, err := ask.NewAwaiting(s.NS, hosts, count)
	if err != nil {
		return none, err
	}
	w.Run(ctx, func(ctx context.Context, id node.ID, heard func(error)) {
		if s.Await(ctx, id, key, version, found.Record, heard) == nil {
			heard(nil)
		}
	})
	return w.End()
}

// WaitHeld waits until count other hosts of each of the sets, or all of them where count is 0, hold what this node
// holds of it. await runs the wait of one set.
func (s *Shards) WaitHeld(ctx context.Context, sets []*node.Set, named []node.ID, count int, await func(context.Context, *node.Set, *ask.Awaiting)) (none status.Waited, err error) {
	type one struct {
		set *node.Set
		w   *ask.Awaiting
	}
	var all []one
	asked := map[node.ID]bool{}
	for _, set := range sets {
		hosts, err := s.otherHosts(set.Shard(), named)
		if err != nil {
			return none, err
		}
		if len(hosts) == 0 && (len(named) > 0 || count == 0) {
			continue // there is no other host, or none of those that are named
		}
		if count > len(hosts) {
			return none, notSoMany(count, len(hosts), set.Shard())
		}
		w, err := ask.NewAwaiting(s.NS, hosts, count)
		if err != nil {
			return none, err
		}
		for _, id := range w.Of() {
			asked[id] = true
		}
		all = append(all, one{set, w})
	}
	for _, id := range named {
		if !asked[id] {
			return none, fmt.Errorf("%w: %s is no other host of a shard that this node holds; ns layout shows the hosts", node.ErrInvalid, status.ID(id))
		}
	}
	var waiting errgroup.Group
	waiting.SetLimit(shardsAwaited)
	for _, a := range all {
		waiting.Go(func() error {
			await(ctx, a.set, a.w)
			return nil
		})
	}
	_ = waiting.Wait() // none fails
	done, need := true, 0
	lacks := map[status.ID]status.Unconfirmed{}
	for _, a := range all {
		done, need = done && a.w.Done(), max(need, a.w.Need())
		found, _ := a.w.End() // done says it
		for _, m := range found.Missing {
			lacks[m.Peer] = status.Unconfirmed{Peer: m.Peer, Why: fmt.Sprintf("shard %d: %s", a.set.Shard(), m.Why)}
		}
	}
	sum := status.Waited{Held: []status.ID{}, Missing: []status.Unconfirmed{}}
	for id := range asked {
		if m, ok := lacks[status.ID(id)]; ok {
			sum.Missing = append(sum.Missing, m)
		} else {
			sum.Held = append(sum.Held, status.ID(id))
		}
	}
	slices.Sort(sum.Held)
	slices.SortFunc(sum.Missing, func(a, b status.Unconfirmed) int { return slices.Compare([]byte(a.Peer), []byte(b.Peer)) })
	if done {
		return sum, nil
	}
	return sum, ask.Unconfirmed(&sum, need)
}

// lookPauseMost is the longest pause between two looks at a host that lacks a version.
const lookPauseMost = 2 * time.Second

// errLacks: a host has answered, and does not hold what is waited for.
var errLacks = errors.New("it does not hold it yet")

// Await looks until a host of a key's shard holds a version of it, or a later one, or the context
// ends. A host that lacks it is given the record, which may be nil. lacks is told after each look in vain.
func (s *Shards) Await(ctx context.Context, id node.ID, key []byte, v dbadapter.Version, record *dbadapter.Record, lacks func(error)) error {
	for pause := pauseFirst; ; pause = min(2*pause, lookPauseMost) {
		held, err := s.give(ctx, id, key, v, record)
		if held {
			return nil
		}
		if err == nil {
			err = errLacks
		}
		if ctx.Err() == nil {
			lacks(err)
		}
		if failed := s.Net.Sleep(ctx, pause); failed != nil {
			return failed
		}
	}
}

// give looks whether a host holds a version, and gives it the record where it does not.
func (s *Shards) give(ctx context.Context, id node.ID, key []byte, v dbadapter.Version, record *dbadapter.Record) (bool, error) {
	a, err := NewAsker(s.NS, s.NS.Home(key))
	if err != nil {
		return false, err
	}
	over := s.Net.Now() + Patience
	answer, err := askSoon(ctx, s, a, id, over, a.record(key, true))
	if err != nil || answer.Version.Compare(v) >= 0 {
		return err == nil, err
	}
	if record == nil || record.Version.Compare(v) < 0 {
		return false, nil
	}
	h, err := askSoon(ctx, s, a, id, over, a.pass(*record))
	if err != nil || len(h.Outcomes) == 0 {
		return false, err
	}
	o := &h.Outcomes[0]
	return o.Held || o.Other != nil && o.Other.Version.Compare(v) >= 0, o.Declined
}
