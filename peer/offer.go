package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// offered is how a routed write has ended.
type offered struct {
	route.Written
	Version dbadapter.Version
}

// offer writes to a key of a namespace that is cut into shards: here, if this node is a
// host, and in any case to the shard's hosts, until as many hold it as ack asks for.
// deletes: a record must be there. The errors are those of a write here, and besides
// ErrUnconfirmed, beside which the version is that of the record which hosts hold or may
// hold, ErrUnreachable where nothing is written, and node.ErrDeclined.
func (ns *Namespace) offer(ctx context.Context, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	over := ns.node.deadline(ctx)
	o := ns.core.Offer(d, deletes, ack, ns.steady)
	for {
		switch o.Next() {
		case node.OfferLookUp:
			found, err := ns.lookUpUntil(ctx, ns.node.deadline(ctx), d.Record.Key, o.All())
			ns.node.metrics.lookedUp(&found, err)
			o.LookedUp(found, err)
		case node.OfferCommit:
			o.Committed(ns.commitOffered(ctx, o))
		case node.OfferHand:
			written, err := ns.handOffered(ctx, o)
			o.Handed(written, err, ctx.Err() != nil)
		case node.OfferHeed:
			written, _ := o.Result()
			o.Heeded(ns.heed(ctx, over, refusals(&written), written.Moved, written.MovedBy))
		case node.OfferOver:
			written, err := o.Result()
			if o.Taken() || err == nil {
				ns.wrote(d.Record.Key)
			}
			if err != nil {
				err = ns.unacknowledged(ctx, &written, o.Taken(), err)
			}
			return offered{written, o.Version()}, err
		}
	}
}

// commitOffered commits a record here, which is a host.
func (ns *Namespace) commitOffered(ctx context.Context, o *node.Offering) error {
	sh := ns.node.shard(o.Set())
	if sh == nil {
		return ErrBusy // it is being opened
	}
	return sh.commit(ctx, o.Attempt())
}

func (ns *Namespace) handOffered(ctx context.Context, o *node.Offering) (route.Written, error) {
	put, err := o.Put(ns.node.deadline(ctx), ns.node.elapsed())
	if err != nil {
		return route.Written{}, err
	}
	return ns.hand(ctx, o.Remote(), o.Record(), put)
}

// unacknowledged is the error of a write that was not acknowledged. taken: a host holds a record of
// it, or may: then no error says that nothing is written.
func (ns *Namespace) unacknowledged(ctx context.Context, w *route.Written, taken bool, err error) error {
	if w.Need > 0 {
		err = ns.explainOffer(ctx, w, err)
	}
	if taken && !errors.Is(err, ErrUnconfirmed) {
		err = fmt.Errorf("%w: hosts hold the record, or may: read the key to see what stands, and then decide anew: %w", ErrUnconfirmed, err)
	}
	return err
}

// offerOne is a write of one key in a namespace that is cut into shards, which one host
// acknowledges, or as many as its draft says.
func (ns *Namespace) offerOne(ctx context.Context, what string, d node.Draft, deletes bool) (dbadapter.Version, error) {
	if err := ns.enter(what); err != nil {
		return dbadapter.Version{}, err
	}
	defer ns.gate.leave()
	done, err := ns.offerInTurn(ctx, d, deletes)
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = item.Err
	}
	switch {
	case errors.Is(err, ErrUnconfirmed): // with the version that hosts hold, or may
	case err != nil:
		done.Version = dbadapter.Version{}
	default:
		return done.Version, nil
	}
	return done.Version, fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), err)
}

// offerInTurn is offer, of a write that rests on what its key holds once no other such write of this node
// is under way.
func (ns *Namespace) offerInTurn(ctx context.Context, d node.Draft, deletes bool) (offered, error) {
	if deletes || d.If != nil {
		ctx, cancel := ns.bind(ctx)
		defer cancel()
		leave, err := ns.turns.take(ctx, d.Record.Key)
		if err != nil {
			return offered{}, err
		}
		defer leave()
	}
	return ns.offer(ctx, d, deletes, ack(&d))
}

// refusals are why hosts have not taken a record.
func refusals(w *route.Written) map[ID]error {
	why := map[ID]error{}
	for _, h := range w.Hosts {
		switch o := h.Outcome; {
		case h.Err != nil && (o == nil || o.Held): // one that holds it may not be settled
			why[ID(h.Peer)] = h.Err
		case o == nil && h.Sent:
			why[ID(h.Peer)] = errUnheard
		case o != nil && o.Declined != nil:
			why[ID(h.Peer)] = o.Declined
		case o != nil && o.Elsewhere:
			why[ID(h.Peer)] = errNoHost
		}
	}
	return why
}

var errNoHost = errors.New("it is no host of the shard by its list")

// errUnheard: a host was sent a record, and has not answered.
var errUnheard = errors.New("it has not answered")

// explainOffer is the error of a write that was not acknowledged.
func (ns *Namespace) explainOffer(ctx context.Context, w *route.Written, err error) error {
	why := refusals(w)
	text := holding(w.Held, w.Need, why)
	switch {
	case errors.Is(context.Cause(ctx), ErrClosed):
		return ErrClosed
	case errors.Is(err, route.ErrOvertaken) && w.Taken():
		return fmt.Errorf("%w: %d of %d hosts hold the record, and another one holds a version that its writer had not seen: read the key to see which of the two stands, and then decide anew", ErrUnconfirmed, w.Held, w.Need)
	case errors.Is(err, route.ErrOvertaken):
		return fmt.Errorf("%w: another version came in between at each attempt", ErrBusy)
	case errors.Is(err, route.ErrRefused) && !slices.ContainsFunc(slices.Collect(maps.Values(why)), func(err error) bool { return !errors.Is(err, errNoHost) }):
		return fmt.Errorf("%w: the layout of the shards is changing: try again in some seconds; %s", ErrUnreachable, text)
	case errors.Is(err, route.ErrRefused):
		for _, reason := range why {
			err = fmt.Errorf("%w: %w", err, reason)
		}
		return fmt.Errorf("%w (%d of %d hosts hold it)", err, w.Held, w.Need)
	case errors.Is(err, route.ErrUnwritten):
		return fmt.Errorf("%w: %w: %s", ErrUnreachable, err, text)
	}
	return fmt.Errorf("%w: %s", ErrUnconfirmed, text)
}

// holding says how many hosts hold a record, and why others do not.
func holding(held, need int, why map[ID]error) string {
	text := fmt.Sprintf("%d of %d hosts of its shard hold it", held, max(need, held))
	switch {
	case len(why) > 0:
		return text + "; " + words(why)
	case held < need:
		return text + "; the time was over before the others had answered"
	}
	return text
}

// hand drives the write of a record to the hosts of its shard. Requests that are under way
// at its end go on: a host that takes the record later holds it.
func (ns *Namespace) hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, put *route.Put) (route.Written, error) {
	n := ns.node
	over, end := context.WithCancel(ns.ctx)
	defer end()
	heard := make(chan func())
	for {
		step := put.Next(n.elapsed())
		switch step.Do {
		case route.Over:
			return put.Result()
		case route.Ask:
			ns.request(func() {
				outcome, sent, err := ns.offerTo(over, remote, ID(step.Peer), record, put.Manner)
				if outcome.Held {
					ns.core.HeldBy(record, step.Peer)
				}
				note := func() {
					if err != nil {
						put.Failed(step.Peer, err, sent, n.elapsed())
					} else {
						put.Answered(step.Peer, outcome, n.elapsed())
					}
				}
				select {
				case heard <- note:
				case <-over.Done():
				}
			})
		case route.Wait:
			timer := time.NewTimer(step.Until - n.elapsed())
			select {
			case note := <-heard:
				note()
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				w, err := put.Result()
				return w, err
			}
			timer.Stop()
		}
	}
}

// offerTo asks one host to hold a record, which may be this node. It lasts as long as the namespace, and not as the
// caller's wait, which over ends.
func (ns *Namespace) offerTo(over context.Context, remote *node.Remote, id ID, record *dbadapter.Record, how route.Manner) (o route.Outcome, sent bool, err error) {
	n := ns.node
	ctx, cancel := context.WithTimeout(ns.ctx, routePatience)
	defer cancel()
	if id == n.ID() {
		o, err = remote.HoldHere(ctx, record, how)
		return o, true, err
	}
	leave, err := n.placeFor(ctx, over, id, len(record.Key)+len(record.Value))
	if err != nil {
		return o, false, err
	}
	defer leave()
	n.metrics.routed.WithLabelValues("write").Inc()
	ask, m, sent, err := n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return remote.AskHold(id, record, how) }, nil)
	if err != nil {
		return o, sent, err
	}
	if o, err = remote.Hold(node.ID(id), ask, m); errors.Is(err, ErrDenied) {
		ns.heed(ctx, n.deadline(ctx), map[ID]error{id: err}, route.Layout{}, "") // it may not have heard that this node is a member
	}
	n.blame(ns, id, m, err)
	if o.Declined != nil {
		n.metrics.routed.WithLabelValues("declined").Inc()
	}
	return o, true, err
}
