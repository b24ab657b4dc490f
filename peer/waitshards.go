package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
)

// A wait in a namespace that is cut into shards is for the hosts of a key's shard. A wait
// for everything is for the hosts of each shard that this node holds.

// shardsAwaited are waited for at the same time.
const shardsAwaited = 16

// waitShards is Wait in a namespace that is cut into shards.
func (ns *Namespace) waitShards(ctx context.Context, o *WaitOptions) (status.Waited, error) {
	over, cancel := ns.bind(ctx)
	defer cancel()
	if o.Key != nil {
		return ns.waitKey(over, cancel, o)
	}
	return ns.waitHeld(over, o)
}

// otherHosts are the hosts of a shard other than this node, or those of them that are named.
func (ns *Namespace) otherHosts(shard placement.Shard, named []ID) (all []node.ID, err error) {
	row := ns.core.Row(shard)
	if row == nil {
		return nil, node.ErrNoLayout
	}
	for _, id := range row.Hosts() {
		if id != ns.core.Self() && ns.core.Admits(id) && (len(named) == 0 || slices.Contains(named, ID(id))) {
			all = append(all, id)
		}
	}
	return all, nil
}

// notSoMany is the error of a wait for more hosts than there are.
func notSoMany(count, there int, shard placement.Shard) error {
	return fmt.Errorf("%w: a wait for %d hosts of shard %d, of which there are %d beside this node", ErrInvalid, count, shard, there)
}

// waitKey waits until hosts of a key's shard hold a version of it, or a later one.
func (ns *Namespace) waitKey(ctx context.Context, cancel context.CancelFunc, o *WaitOptions) (status.Waited, error) {
	shard, version := ns.core.Home(o.Key), o.Version
	hosts, err := ns.otherHosts(shard, o.Peers)
	if err != nil {
		return status.Waited{}, err
	}
	for _, id := range o.Peers {
		if !slices.Contains(hosts, node.ID(id)) {
			return status.Waited{}, fmt.Errorf("%w: %s is not another host of the key's shard %d, which locate names", ErrInvalid, id, shard)
		}
	}
	if o.Count > len(hosts) {
		return status.Waited{}, notSoMany(o.Count, len(hosts), shard)
	}
	found, err := ns.lookUp(ctx, o.Key, shards.GetOptions{Level: quorum.Quorum, AtLeast: version, Bare: true})
	switch {
	case err != nil && version.IsZero():
		return status.Waited{}, err
	case found.Record == nil && version.IsZero():
		return status.Waited{}, fmt.Errorf("%w: there is nothing under the key to wait for", dbadapter.ErrNotFound)
	case version.IsZero():
		version = found.Record.Version
	}
	if len(hosts) == 0 { // this node is the only host
		return status.Waited{Held: []ID{}, Missing: []status.Unconfirmed{}}, nil
	}
	w, err := ask.NewAwaiting(ns.core, hosts, o.Count)
	if err != nil {
		return status.Waited{}, err
	}
	var mu sync.Mutex // guards w
	heard := func(id node.ID, err error) {
		mu.Lock()
		defer mu.Unlock()
		w.Heard(id, err)
		if w.Done() {
			cancel()
		}
	}
	var looking sync.WaitGroup
	for _, id := range w.Of() {
		looking.Go(func() {
			if ns.hosts.Await(ctx, id, o.Key, version, found.Record, func(lacks error) { heard(id, lacks) }) == nil {
				heard(id, nil)
			}
		})
	}
	looking.Wait()
	return ns.waitedFor(ctx, w.Done(), waitedOf(w), w.Need())
}

// waitedFor is the end of a wait.
func (ns *Namespace) waitedFor(ctx context.Context, done bool, found status.Waited, need int) (status.Waited, error) {
	switch {
	case done:
		return found, nil
	case errors.Is(context.Cause(ctx), ErrClosed):
		return found, ErrClosed
	}
	return found, fmt.Errorf("%w: %s", ErrUnconfirmed, words(&found, need))
}

// waitHeld waits until the other hosts of each shard that this node holds hold what it holds.
func (ns *Namespace) waitHeld(ctx context.Context, o *WaitOptions) (status.Waited, error) {
	type one struct {
		sh *shard
		w  *ask.Awaiting
	}
	var all []one
	asked := map[ID]bool{}
	for _, sh := range ns.shards() {
		hosts, err := ns.otherHosts(sh.set.Shard(), o.Peers)
		if err != nil {
			return status.Waited{}, err
		}
		if len(hosts) == 0 && (len(o.Peers) > 0 || o.Count == 0) {
			continue // there is no other host, or none of those that are named
		}
		if o.Count > len(hosts) {
			return status.Waited{}, notSoMany(o.Count, len(hosts), sh.set.Shard())
		}
		w, err := ask.NewAwaiting(ns.core, hosts, o.Count)
		if err != nil {
			return status.Waited{}, err
		}
		for _, id := range w.Of() {
			asked[ID(id)] = true
		}
		all = append(all, one{sh, w})
	}
	for _, id := range o.Peers {
		if !asked[id] {
			return status.Waited{}, fmt.Errorf("%w: %s is no other host of a shard that this node holds; ns layout shows the hosts", ErrInvalid, id)
		}
	}
	places := make(chan struct{}, shardsAwaited)
	var waiting sync.WaitGroup
	for _, a := range all {
		waiting.Go(func() {
			if enter(ctx, places) != nil {
				return
			}
			defer func() { <-places }()
			own, cancel := bind(ctx, a.sh.ctx)
			defer cancel()
			a.sh.await(own, cancel, a.w, nil)
		})
	}
	waiting.Wait()
	done, need := true, 0
	lacks := map[ID]status.Unconfirmed{}
	for _, a := range all {
		done, need = done && a.w.Done(), max(need, a.w.Need())
		found := waitedOf(a.w)
		for _, m := range found.Missing {
			lacks[m.Peer] = status.Unconfirmed{Peer: m.Peer, Why: fmt.Sprintf("shard %d: %s", a.sh.set.Shard(), m.Why)}
		}
	}
	sum := status.Waited{Held: []ID{}, Missing: []status.Unconfirmed{}}
	for id := range asked {
		if m, ok := lacks[id]; ok {
			sum.Missing = append(sum.Missing, m)
		} else {
			sum.Held = append(sum.Held, id)
		}
	}
	slices.Sort(sum.Held)
	slices.SortFunc(sum.Missing, func(a, b status.Unconfirmed) int { return slices.Compare([]byte(a.Peer), []byte(b.Peer)) })
	return ns.waitedFor(ctx, done, sum, need)
}
