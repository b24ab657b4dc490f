package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// A wait in a namespace that is cut into shards is for the hosts of a key's shard; or, of
// everything, for the hosts of each shard that this node holds.

// shardsAwaited are waited for beside one another.
const shardsAwaited = 16

// The pauses between two looks at a host that lacks a version.
const (
	lookPause     = 100 * time.Millisecond
	lookPauseMost = 2 * time.Second
)

// waitShards is Wait in a namespace that is cut into shards.
func (ns *Namespace) waitShards(ctx context.Context, o *WaitOptions) (Waited, error) {
	over, cancel := ns.bind(ctx)
	defer cancel()
	if o.Key != nil {
		return ns.waitKey(over, cancel, o)
	}
	return ns.waitHeld(over, o)
}

// otherHosts are the hosts of a shard beside this node, or those of them that are named.
func (ns *Namespace) otherHosts(remote *node.Remote, named []ID) (all []node.ID, err error) {
	hosts, err := remote.Hosts()
	if err != nil {
		return nil, err
	}
	for _, id := range hosts {
		if id != node.ID(ns.node.self.id) && (len(named) == 0 || slices.Contains(named, ID(id))) {
			all = append(all, id)
		}
	}
	return all, nil
}

// someRemoved is the error of a wait for all hosts of a shard of which some are no members any more.
func someRemoved(remote *node.Remote, o *WaitOptions) error {
	all, _ := remote.Hosts()
	if o.Count > 0 || len(o.Peers) > 0 || remote.Named() == len(all) {
		return nil
	}
	return fmt.Errorf("%w: of the %d hosts that the layout names for shard %d %d are members: try again when the next layout names others, or wait for fewer", ErrUnreachable, remote.Named(), remote.Shard(), len(all))
}

// tooFew is the error of a wait for more hosts than there are.
func tooFew(count, there int, shard uint32) error {
	return fmt.Errorf("%w: a wait for %d hosts of shard %d, of which there are %d beside this node", ErrInvalid, count, shard, there)
}

// waitKey waits until hosts of a key's shard hold a version of it, or a later one.
func (ns *Namespace) waitKey(ctx context.Context, cancel context.CancelFunc, o *WaitOptions) (Waited, error) {
	remote, found, err := ns.awaited(ctx, o)
	if err != nil {
		return Waited{}, err
	}
	hosts, err := ns.otherHosts(remote, o.Peers)
	if err != nil {
		return Waited{}, err
	}
	for _, id := range o.Peers {
		if !slices.Contains(hosts, node.ID(id)) {
			return Waited{}, fmt.Errorf("%w: %s is not another host of the key's shard %d, which locate names", ErrInvalid, id, remote.Shard())
		}
	}
	if o.Count > len(hosts) {
		return Waited{}, tooFew(o.Count, len(hosts), uint32(remote.Shard()))
	}
	if err := someRemoved(remote, o); err != nil {
		return Waited{}, err
	}
	version := o.Version
	if version.IsZero() {
		version = found.Record.Version
	}
	if len(hosts) == 0 { // this node is the only host
		return Waited{Held: []ID{}, Missing: []Unconfirmed{}}, nil
	}
	w, err := ns.core.NewAwaiting(hosts, o.Count)
	if err != nil {
		return Waited{}, err
	}
	var mu sync.Mutex // guards w
	var looking sync.WaitGroup
	for _, id := range w.Of() {
		looking.Go(func() {
			ns.awaitVersion(ctx, remote, ID(id), version, found.Record, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil || err == nil {
					w.Heard(id, err)
				}
				if w.Done() {
					cancel()
				}
			})
		})
	}
	looking.Wait()
	return ns.waitedFor(ctx, w.Done(), waitedOf(w), w.Need())
}

// awaited is the shard of a key that is waited for, and what is known of the key.
func (ns *Namespace) awaited(ctx context.Context, o *WaitOptions) (*node.Remote, lookedUp, error) {
	recalled := ns.core.Recall(o.Key, ns.steady())
	found, err := ns.lookUp(ctx, o.Key, false)
	if own := recalled.Own; own != nil && recalled.Reads() && o.Version.IsZero() && (found.Record == nil || found.Record.Version.Compare(own.Version) < 0) {
		o.Version, found.Record = own.Version, nil // the host that was asked has not heard of this node's own write
	}
	switch {
	case err != nil && o.Version.IsZero():
		return nil, found, err
	case found.Record == nil && !found.Sure && o.Version.IsZero():
		return nil, found, ErrUnsure
	case found.Record == nil && o.Version.IsZero():
		return nil, found, fmt.Errorf("%w: there is nothing under the key to wait for", dbadapter.ErrNotFound)
	}
	return ns.core.Remote(o.Key), found, nil
}

// waitedFor is the end of a wait.
func (ns *Namespace) waitedFor(ctx context.Context, done bool, found Waited, need int) (Waited, error) {
	switch {
	case done:
		return found, nil
	case errors.Is(context.Cause(ctx), ErrClosed):
		return found, ErrClosed
	}
	return found, fmt.Errorf("%w: %s", ErrUnconfirmed, found.words(need))
}

// awaitVersion looks until a host holds a version of the key, or a later one. A host that
// lacks it is given the record, which may be nil, as often as it is looked.
func (ns *Namespace) awaitVersion(ctx context.Context, remote *node.Remote, id ID, v dbadapter.Version, record *dbadapter.Record, heard func(error)) {
	for pause := lookPause; ; pause = min(2*pause, lookPauseMost) {
		answer, err := ns.readOf(ctx, remote, id)
		switch {
		case err != nil:
		case !answer.Host:
			err = errNoHost
		case answer.Record != nil && answer.Record.Version.Compare(v) >= 0:
			heard(nil)
			return
		case record != nil && record.Version.Compare(v) >= 0:
			o, offered := ns.offerWhile(ctx, remote, id, record)
			if offered == nil && o.Held || o.Other != nil && o.Other.Version.Compare(v) >= 0 {
				heard(nil)
				return
			}
			err = errors.Join(errLacks, offered, o.Declined)
		default:
			err = errLacks
		}
		heard(err)
		if !sleep(ctx, pause) {
			return
		}
	}
}

// offerWhile asks a host to hold a record. It waits no longer than its context; the request
// goes on.
func (ns *Namespace) offerWhile(ctx context.Context, remote *node.Remote, id ID, record *dbadapter.Record) (o route.Outcome, err error) {
	heard := make(chan struct{})
	var found route.Outcome
	var failed error
	ns.request(func() {
		defer close(heard)
		found, _, failed = ns.offerTo(ctx, remote, id, record, route.Manner{})
	})
	select {
	case <-heard:
		return found, failed
	case <-ctx.Done():
		return o, context.Cause(ctx)
	}
}

// errLacks: a host has answered, and does not hold what is waited for.
var errLacks = errors.New("not there yet")

// waitHeld waits until the other hosts of each shard that this node holds hold what it holds.
func (ns *Namespace) waitHeld(ctx context.Context, o *WaitOptions) (Waited, error) {
	type one struct {
		sh *shard
		w  *node.Awaiting
	}
	var all []one
	asked := map[ID]bool{}
	for _, sh := range ns.shards() {
		remote := ns.core.Shard(sh.set.Shard())
		hosts, err := ns.otherHosts(remote, o.Peers)
		if err = errors.Join(err, someRemoved(remote, o)); err != nil {
			return Waited{}, err
		}
		if len(hosts) == 0 && (len(o.Peers) > 0 || o.Count == 0) {
			continue // there is no other host, or none of those that are named
		}
		if o.Count > len(hosts) {
			return Waited{}, tooFew(o.Count, len(hosts), uint32(sh.set.Shard()))
		}
		w, err := ns.core.NewAwaiting(hosts, o.Count)
		if err != nil {
			return Waited{}, err
		}
		for _, id := range w.Of() {
			asked[ID(id)] = true
		}
		all = append(all, one{sh, w})
	}
	for _, id := range o.Peers {
		if !asked[id] {
			return Waited{}, fmt.Errorf("%w: %s is no other host of a shard that this node holds; ns layout shows the hosts", ErrInvalid, id)
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
	lacks := map[ID]Unconfirmed{}
	for _, a := range all {
		done, need = done && a.w.Done(), max(need, a.w.Need())
		found := waitedOf(a.w)
		for _, m := range found.Missing {
			lacks[m.Peer] = Unconfirmed{m.Peer, fmt.Sprintf("shard %d: %s", a.sh.set.Shard(), m.Why)}
		}
	}
	sum := Waited{Held: []ID{}, Missing: []Unconfirmed{}}
	for id := range asked {
		if m, ok := lacks[id]; ok {
			sum.Missing = append(sum.Missing, m)
		} else {
			sum.Held = append(sum.Held, id)
		}
	}
	slices.Sort(sum.Held)
	slices.SortFunc(sum.Missing, func(a, b Unconfirmed) int { return slices.Compare([]byte(a.Peer), []byte(b.Peer)) })
	return ns.waitedFor(ctx, done, sum, need)
}

// mayWaitFor says what forbids a wait for so many hosts of a key's shard.
func (ns *Namespace) mayWaitFor(key []byte, members int) error {
	remote := ns.core.Remote(key)
	hosts, err := ns.otherHosts(remote, nil)
	if err == nil && members > len(hosts) {
		err = tooFew(members, len(hosts), uint32(remote.Shard()))
	}
	return err
}
