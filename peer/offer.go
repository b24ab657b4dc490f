package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// offering is a routed write on its way.
type offering struct {
	ns      *Namespace
	draft   node.Draft
	deletes bool // a record must be there
	need    int  // so many hosts are to hold it
	// record is what hosts are asked to hold; nil: it is to be made. here: this node, which
	// holds it already, as a host that is settled or not.
	record  *dbadapter.Record
	here    node.ID
	settled bool
	version dbadapter.Version // of the record that was made last
	// taken: a host holds a record of this write, or may. From then on no error may say that
	// nothing is written, and a condition is not looked at anew: the record that is found
	// would be the write's own.
	taken bool
}

// offer writes to a key of a namespace that is cut into shards: here, if this node is a
// host, and in any case to the shard's hosts, until as many hold it as ack asks for.
// deletes: a record must be there. The errors are those of a write here, and besides
// ErrUnconfirmed, beside which the version is that of the record which hosts hold or may
// hold, ErrUnreachable where nothing is written, and node.ErrDeclined.
func (ns *Namespace) offer(ctx context.Context, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	if ns.core.Writers() {
		return ns.offerWritten(ctx, d, deletes, ack)
	}
	o := &offering{ns: ns, draft: d, deletes: deletes}
	heeded := false
	for tries := 1; ; tries++ {
		remote, err := ns.core.Remote(d.Record.Key)
		if err == nil {
			o.need, err = enough(remote, ack)
		}
		if err == nil && o.record == nil {
			err = o.make(ctx, remote)
			if (errors.Is(err, node.ErrNotHost) || errors.Is(err, ErrClosed)) && ctx.Err() == nil && tries < offerTries {
				continue // the shard has left this node meanwhile
			}
		}
		if err != nil {
			return o.ended(ctx, route.Written{}, err)
		}
		o.version = o.record.Version
		written, err := o.hand(ctx, remote)
		o.taken = o.taken || written.Taken()
		switch {
		case err == nil:
			return offered{written, o.version}, nil
		case ctx.Err() != nil || tries >= offerTries:
		case errors.Is(err, route.ErrOvertaken):
			if !o.again(written.Others) {
				break
			}
			continue
		case !heeded && ns.heed(ctx, refusals(&written), written.Moved, written.MovedBy):
			heeded = true
			if !o.taken {
				o.record = nil // the list may give another version to it
			}
			continue
		}
		return o.ended(ctx, written, err)
	}
}

// conditional: the write rests on what the key holds.
func (o *offering) conditional() bool { return o.deletes || o.draft.If != nil }

// again has the record made anew, over what hosts hold in its place, and reports whether it
// may be. A conditional write is looked up anew, unless a host may have taken it.
func (o *offering) again(others []*dbadapter.Record) bool {
	switch {
	case !o.conditional():
		o.draft.Seen = append(slices.Clone(o.draft.Seen), append(others, o.record)...)
	case o.taken:
		return false
	}
	o.record = nil
	return true
}

// make makes the record, and holds it here if this node is a host.
func (o *offering) make(ctx context.Context, remote *node.Remote) error {
	set := remote.Here()
	o.here, o.settled = "", false
	if set != nil {
		o.here, o.settled = node.ID(o.ns.node.self.id), set.Settled()
	}
	if o.conditional() && !o.settled {
		found, err := o.ns.mayOffer(ctx, remote, o.draft, o.deletes)
		if err != nil {
			return err
		}
		o.draft.Seen = []*dbadapter.Record{found}
	}
	var err error
	if set == nil {
		o.record, err = remote.Make(o.draft)
		return err
	}
	sh := o.ns.node.shard(set)
	if sh == nil {
		return ErrBusy // it is being opened
	}
	attempt, err := set.Write(o.draft)
	if o.deletes {
		attempt, err = set.Delete(o.draft.Record.Key, o.draft.Seen...)
	}
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if err == nil {
		o.record, o.taken = attempt.Record(0), true
	}
	return err
}

// ended is how a write has ended that was not acknowledged.
func (o *offering) ended(ctx context.Context, w route.Written, err error) (offered, error) {
	if w.Need > 0 {
		err = o.ns.explainOffer(ctx, &w, err)
	}
	if o.taken && !errors.Is(err, ErrUnconfirmed) {
		err = fmt.Errorf("%w: hosts hold the record, or may: read the key to see what stands, and then decide anew: %w", ErrUnconfirmed, err)
	}
	return offered{w, o.version}, err
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
	switch {
	case errors.Is(err, ErrUnconfirmed): // with the version that hosts hold, or may
	case err != nil:
		done.Version = dbadapter.Version{}
	default:
		return done.Version, nil
	}
	return done.Version, fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), err)
}

// enough is how many hosts are to hold a record, or says why there are too few.
func enough(remote *node.Remote, ack route.Ack) (need int, err error) {
	hosts, err := remote.Hosts()
	if err != nil {
		return 0, err
	}
	if need, err = ack.Of(remote.Named()); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if need > len(hosts) {
		return 0, fmt.Errorf("%w: %d hosts are to hold the record, and of the %d that the layout names %d are members: try again when the next layout names others, or ask for fewer acknowledgements",
			ErrUnreachable, need, remote.Named(), len(hosts))
	}
	return need, nil
}

// mayOffer says what a key holds that a write rests on.
func (ns *Namespace) mayOffer(ctx context.Context, remote *node.Remote, d node.Draft, deletes bool) (*dbadapter.Record, error) {
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
	return found.Record, nil
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
	case errors.Is(err, route.ErrOvertaken) && w.Taken():
		return fmt.Errorf("%w: %d of %d hosts hold the record, and another one holds a version that its writer had not seen: read the key to see which of the two stands, and then decide anew", ErrUnconfirmed, w.Held, w.Need)
	case errors.Is(err, route.ErrOvertaken):
		return fmt.Errorf("%w: another version came in between at each attempt", ErrBusy)
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
func (o *offering) hand(ctx context.Context, remote *node.Remote) (route.Written, error) {
	ns, n, record := o.ns, o.ns.node, o.record
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	put, err := route.NewPut(hosts, o.here, o.settled, route.Ack(o.need), n.deadline(ctx), n.elapsed())
	if err != nil {
		return route.Written{}, err
	}
	if o.here != "" && o.need <= 1 {
		return route.Written{Need: o.need, Held: 1, Settled: o.settled}, nil // a push brings it to the others
	}
	put.Patient = o.conditional()
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
				outcome, sent, err := ns.offerTo(over, remote, ID(step.Peer), record)
				note := func() {
					if err != nil {
						put.Failed(step.Peer, err, sent, n.elapsed())
					} else {
						put.Answered(step.Peer, outcome)
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

// offerTo asks one host to hold a record. It lasts as long as the namespace, and not as the
// caller's wait, which over ends.
func (ns *Namespace) offerTo(over context.Context, remote *node.Remote, id ID, record *dbadapter.Record) (o route.Outcome, sent bool, err error) {
	n := ns.node
	ctx, cancel := context.WithTimeout(ns.ctx, routePatience)
	defer cancel()
	leave, err := n.placeFor(ctx, over, id, len(record.Key)+len(record.Value))
	if err != nil {
		return o, false, err
	}
	defer leave()
	n.metrics.routed.WithLabelValues("write").Inc()
	ask, m, sent, err := n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return remote.AskHold(id, record) }, nil)
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
