package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// offerTries is how often a record is made anew, because a host holds what it has not seen.
const offerTries = 8

// offered is how a routed write has ended.
type offered struct {
	route.Written
	Version dbadapter.Version
}

// offer writes to a key of a namespace that is cut into shards: here, if this node is a
// host, and in any case to the shard's hosts, until as many hold it as ack asks for.
// deletes: a record must be there. The errors are those of a write here, and besides
// ErrUnconfirmed, ErrUnreachable where nothing is written, and node.ErrDeclined.
func (ns *Namespace) offer(ctx context.Context, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	var seen []*dbadapter.Record
	heeded := false
	for tries := 1; ; tries++ {
		remote, err := ns.core.Remote(d.Record.Key)
		if err != nil {
			return offered{}, err
		}
		if here := remote.Here(); here != nil {
			done, err := ns.offerHere(ctx, remote, here, d, deletes, ack)
			if (errors.Is(err, node.ErrNotHost) || errors.Is(err, ErrClosed)) && ctx.Err() == nil && tries < offerTries {
				continue // the shard has left this node meanwhile
			}
			return done, err
		}
		if err := enough(remote, ack); err != nil {
			return offered{}, err
		}
		if deletes || d.If != nil {
			if seen, err = ns.mayOffer(ctx, remote, d, deletes); err != nil {
				return offered{}, err
			}
		}
		record, err := remote.Make(d, seen...)
		if err != nil {
			return offered{}, err
		}
		written, err := ns.hand(ctx, remote, record, "", false, ack)
		out := offered{written, record.Version}
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil || tries >= offerTries:
		case errors.Is(err, route.ErrOvertaken):
			seen = append(seen, written.Others...)
			continue
		case !heeded && ns.heed(ctx, refusals(&written), written.Moved, written.MovedBy):
			heeded = true
			continue
		}
		return out, ns.explainOffer(ctx, &written, err)
	}
}

// offerOne is a write of one key in a namespace that is cut into shards, which one host
// acknowledges, or as many as its draft says.
func (ns *Namespace) offerOne(ctx context.Context, what string, d node.Draft, deletes bool) (dbadapter.Version, error) {
	if err := ns.enter(what); err != nil {
		return dbadapter.Version{}, err
	}
	defer ns.gate.leave()
	done, err := ns.offer(ctx, d, deletes, ack(&d))
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = item.Err
	}
	if err != nil {
		return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), err)
	}
	return done.Version, nil
}

// enough says why there are too few hosts for so many acknowledgements, or nil.
func enough(remote *node.Remote, ack route.Ack) error {
	hosts, err := remote.Hosts()
	if err != nil {
		return err
	}
	if _, err := ack.Of(len(hosts)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// offerHere writes here, as to a namespace that is one shard, and hands the record on.
func (ns *Namespace) offerHere(ctx context.Context, remote *node.Remote, here *node.Set, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	if err := enough(remote, ack); err != nil { // before anything is written
		return offered{}, err
	}
	sh := ns.node.shard(here)
	if sh == nil {
		return offered{}, ErrBusy // it is being opened
	}
	attempt, err := here.Write(d)
	if deletes {
		attempt, err = here.Delete(d.Record.Key)
	}
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if err != nil {
		return offered{}, err
	}
	out := offered{Version: attempt.Version(0)}
	if out.Written, err = ns.hand(ctx, remote, attempt.Record(0), node.ID(ns.node.self.id), here.Settled(), ack); err != nil {
		err = ns.explainOffer(ctx, &out.Written, err)
	}
	return out, err
}

// mayOffer says what a key holds that a write rests on.
func (ns *Namespace) mayOffer(ctx context.Context, remote *node.Remote, d node.Draft, deletes bool) ([]*dbadapter.Record, error) {
	found, err := ns.lookUp(ctx, d.Record.Key, false)
	if err != nil {
		return nil, err
	}
	if err := remote.Holds(d, deletes, found.Record); err != nil {
		if !found.Sure {
			return nil, ErrUnsure
		}
		return nil, err
	}
	if !found.Sure && found.Record == nil {
		return nil, ErrUnsure
	}
	return []*dbadapter.Record{found.Record}, nil
}

// refusals are why hosts have not taken a record.
func refusals(w *route.Written) map[ID]error {
	why := map[ID]error{}
	for _, h := range w.Hosts {
		switch o := h.Outcome; {
		case o == nil && h.Err != nil:
			why[ID(h.Peer)] = h.Err
		case o != nil && o.Declined != nil:
			why[ID(h.Peer)] = o.Declined
		case o != nil && o.Elsewhere:
			why[ID(h.Peer)] = errNoHost
		}
	}
	return why
}

var errNoHost = errors.New("it is no host of the shard by its list")

// explainOffer is the error of a write that was not acknowledged.
func (ns *Namespace) explainOffer(ctx context.Context, w *route.Written, err error) error {
	why := refusals(w)
	text := fmt.Sprintf("%d of %d hosts hold it; %s", w.Held, w.Need, words(why))
	switch {
	case errors.Is(context.Cause(ctx), ErrClosed):
		return ErrClosed
	case errors.Is(err, route.ErrOvertaken):
		return fmt.Errorf("%w: another version came in between at each of %d attempts", ErrBusy, offerTries)
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

// hand drives the write of a record to the hosts of its shard. Requests that are under way
// at its end go on: a host that takes the record later holds it.
func (ns *Namespace) hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, here node.ID, settled bool, ack route.Ack) (route.Written, error) {
	n := ns.node
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	put, err := route.NewPut(hosts, here, settled, ack, n.deadline(ctx), n.elapsed())
	if err != nil {
		return route.Written{}, err
	}
	if need, _ := ack.Of(len(hosts)); here != "" && need <= 1 {
		return route.Written{Need: need, Held: 1, Settled: settled}, nil // a push brings it to the others
	}
	over := make(chan struct{})
	defer close(over)
	heard := make(chan func())
	for {
		step := put.Next(n.elapsed())
		switch step.Do {
		case route.Over:
			return put.Result()
		case route.Ask:
			ns.request(func() {
				outcome, sent, err := ns.offerTo(remote, ID(step.Peer), record)
				note := func() {
					if err != nil {
						put.Failed(step.Peer, err, sent, n.elapsed())
					} else {
						put.Answered(step.Peer, outcome)
					}
				}
				select {
				case heard <- note:
				case <-over:
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

// offerTo asks one host to hold a record. It lasts as long as the namespace, not as the
// caller's wait.
func (ns *Namespace) offerTo(remote *node.Remote, id ID, record *dbadapter.Record) (o route.Outcome, sent bool, err error) {
	n := ns.node
	ctx, cancel := context.WithTimeout(ns.ctx, routePatience)
	defer cancel()
	n.metrics.routed.WithLabelValues("write").Inc()
	ask, m, sent, err := n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return remote.AskHold(id, record) })
	if err != nil {
		return o, sent, err
	}
	if o, err = remote.Hold(node.ID(id), ask, m); errors.Is(err, ErrDenied) {
		ns.heed(ctx, map[ID]error{id: err}, route.Layout{}, "") // it may not have heard that this node is a member
	}
	n.blame(ns, id, m, err)
	if o.Declined != nil {
		n.metrics.routed.WithLabelValues("declined").Inc()
	}
	return o, true, err
}
