package peer

import (
	"context"
	"fmt"
	"iter"

	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
)

// Future lists the records from the future, by key: what this node wrote, and
// took from others, while its clock was wrong. Close neither the namespace nor
// the node inside the loop.
func (ns *Namespace) Future(ctx context.Context) iter.Seq2[status.FutureRecord, error] {
	return listed(ctx, ns, "list what is from the future in", func(ctx context.Context) iter.Seq2[status.FutureRecord, error] {
		var all []iter.Seq2[status.FutureRecord, error]
		for _, sh := range ns.shards() {
			all = append(all, sh.set.Future(ctx))
		}
		return shards.ByKey(func(r *status.FutureRecord) []byte { return r.Key }, all)
	})
}

// Restamp gives each record from the future that this node wrote, or imported with its
// date, a version of now with the same content. It is durable, and returns how many it
// has changed. It is for a clock that was wrong and has been set right: writes are
// accepted again. Writes are still refused while a record of another member is from the
// future, too: this node's clock was as wrong as that member's when it took the record. That
// member restamps what it still holds. Where it has done so already, drop the namespace
// here and join it again.
//
// A record becomes as late as the members accept now. So it is later than what they hold of its key, also from a
// clock that was fast by less than the skew. No member with a right clock has accepted the old versions. From a
// member whose clock was as wrong they return. An error leaves some records as they were: restamp again. Other
// writes wait meanwhile: a second a million records.
func (ns *Namespace) Restamp(ctx context.Context) (restamped int, err error) {
	err = ns.within(ctx, "restamp", func(ctx context.Context) (err error) {
		if restamped, err = ns.core.Restamp(ctx); err != nil {
			err = fmt.Errorf("%d records are done: %w", restamped, err)
		}
		return err
	})
	return restamped, err
}

func (ns *Namespace) twins() []status.Twin {
	list := []status.Twin{}
	for _, t := range ns.core.Twins() {
		list = append(list, status.Twin{ID: ID(t.Peer), Heard: t.At[:]})
	}
	return list
}

// ClockOffset compares this machine's clock with those of the peers that this node has
// synced with lately. The result ok is false if there was no such peer.
func (n *Node) ClockOffset() (o status.Clock, ok bool) {
	own, peers := n.core.ClockOffset()
	return status.Clock{By: own.By, Error: own.Error, Peers: peers, Off: own.Off()}, peers > 0
}
