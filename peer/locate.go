package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// Ack is how many hosts of a key's shard must hold a write durably before it is
// acknowledged: a number from 1 on, AckMajority or AckAll. ParseAck reads one.
type Ack = route.Ack

// The numbers that depend on how many hosts a shard has.
const (
	AckMajority = route.Majority
	AckAll      = route.All
)

// ParseAck reads an Ack: a number, "majority" or "all"; the empty text is 1.
func ParseAck(s string) (Ack, error) {
	a, err := route.ParseAck(s)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return a, nil
}

// Acks has a write to a namespace that is cut into shards acknowledged once so many hosts
// hold it; without it, one, or of a write on a condition a majority: of two such writes on one version at one moment, at two nodes,
// not both are acknowledged then. When its time is over first, the error is ErrUnconfirmed, and
// says which hosts hold it, and the version is beside it: what is written there stays. In a namespace without shards it
// is ErrInvalid: WaitFor waits for members there.
func Acks(a Ack) PutOption { return func(d *node.Draft) { d.Ack = int(a) } }

// ack is what a draft asks for.
func ack(d *node.Draft) route.Ack {
	if d.Ack == 0 && d.If != nil {
		return route.Majority
	}
	return route.Ack(d.Ack)
}

// unsharded says what is wrong with a draft for a namespace without shards, or for a batch.
func unsharded(d *node.Draft) error {
	if d.Ack != 0 {
		return fmt.Errorf("%w: a number of acknowledgements, of a batch or in a namespace that is not cut into shards: wait for members instead (put --wait)", ErrInvalid)
	}
	return nil
}

// Located is where a key is, and what its hosts say of it.
type Located struct {
	// Shard is the number of the key's shard.
	Shard int
	// Hosts are the members that are to hold it by the layout that counts here; none if
	// no layout is known yet.
	Hosts []ID
	// Record is what the key was found to hold, a tombstone too; nil: nothing.
	Record *dbadapter.Record
	// Sure: a host that can be sure has said so.
	Sure bool
	// Doubt, unless it is sure, says why, for a person.
	Doubt string
	// Here: this node is a host, and its own answer is among what was found.
	Here bool
	// Asked are the other nodes that were asked, in that order.
	Asked []LocatedAt
}

// LocatedAt is what one node has answered.
type LocatedAt struct {
	Peer ID
	// Host: it is a host of the shard by its own list; Settled: it can be sure of what it
	// does not hold.
	Host, Settled bool
	// Version is that of the record that it holds; zero: it holds none, or has not answered. Deleted: it is a tombstone.
	Version dbadapter.Version
	Deleted bool
	// Took is how long its answer took.
	Took time.Duration
	// Err is why it has not answered; nil if it has, or was awaited no longer.
	Err error
	// Answered: it has answered.
	Answered bool
}

// Locate looks a key up as Get does in a namespace that is cut into shards, or at all nodes
// that may hold it, and tells what was asked. The result is meaningful beside the error,
// which is ErrUnsure where no host has answered.
func (ns *Namespace) Locate(ctx context.Context, key []byte, all bool) (Located, error) {
	if err := ns.enter("locate"); err != nil {
		return Located{}, err
	}
	defer ns.gate.leave()
	l, err := ns.locate(ctx, key, all)
	if err = ns.orRemoved(err); err != nil {
		return l, fmt.Errorf("locate %q in %s: %w", clip(key), ns.Name(), err)
	}
	return l, nil
}

func (ns *Namespace) locate(ctx context.Context, key []byte, all bool) (l Located, err error) {
	if ns.core.Rule() == nil {
		return l, node.ErrOneShard
	}
	if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
		return l, err
	}
	found, err := ns.readKey(ctx, key, all)
	remote := ns.core.Remote(key)
	l.Shard = int(remote.Shard())
	hosts, _ := remote.Hosts() // none is an answer
	for _, id := range hosts {
		l.Hosts = append(l.Hosts, ID(id))
	}
	l.Record, l.Sure, l.Doubt, l.Here = found.Record, found.Sure, found.Doubt, found.Here
	for _, h := range found.Heard {
		at := LocatedAt{Peer: ID(h.Peer), Took: h.Took, Err: h.Err}
		if a := h.Answer; a != nil {
			at.Answered, at.Host, at.Settled = true, a.Host, a.Settled
			if r := a.Record; r != nil {
				at.Version, at.Deleted = r.Version, r.Deleted
			}
		}
		l.Asked = append(l.Asked, at)
	}
	return l, err
}
