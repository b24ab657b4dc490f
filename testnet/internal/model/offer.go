package model

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// offerTries is how often a record is made anew, because a host holds what it has not seen.
const offerTries = 8

// Offer is a write of one key in a namespace that is cut into shards.
type Offer struct {
	Key     string
	Value   []byte
	Deletes bool
	Ack     route.Ack
	// Made is told of each version that is made, before a host hears of it.
	Made func(version dbadapter.Version)
	// Held is told at the end of a write that is acknowledged: the nodes that hold it durably.
	// Failed, otherwise: written says that hosts may hold it.
	Held   func(version dbadapter.Version, hosts []int)
	Failed func(err error, written bool)
}

// Offer writes at any node. A node that dies meanwhile tells nothing.
func (n *Node) Offer(o Offer) {
	p := n.process
	if p == nil {
		o.Failed(ErrDown, false)
		return
	}
	p.now(func() {
		if p.ns == nil {
			o.Failed(errNoNamespace, false)
			return
		}
		p.routing++
		w := &offer{Offer: o, process: p, draft: node.Draft{Record: dbadapter.Record{Key: []byte(o.Key), Value: o.Value, Deleted: o.Deletes}}}
		w.try()
	})
}

// offer is a write under way, as package peer makes it.
type offer struct {
	Offer
	process *process
	draft   node.Draft
	tries   int
	heeded  bool
	// record is what hosts are asked to hold; nil: it is to be made. here: this node, which
	// holds it already, as a host that is settled or not.
	record  *dbadapter.Record
	here    node.ID
	settled bool
	need    int
	// taken: a host holds a record of this write, or may.
	taken bool
}

func (w *offer) fail(err error) {
	p := w.process
	p.routing--
	p.refused(err)
	w.Failed(err, w.taken)
}

// try writes here, if this node is a host, and in any case to the shard's hosts.
func (w *offer) try() {
	p := w.process
	w.tries++
	remote, err := p.ns.Remote(w.draft.Record.Key)
	if err == nil {
		w.need, err = enough(remote, w.Ack)
	}
	if err != nil {
		w.fail(err)
		return
	}
	made := func(err error) {
		switch {
		case err == nil:
			w.hand(remote)
		case (errors.Is(err, node.ErrNotHost) || errors.Is(err, dbadapter.ErrClosed)) && w.tries < offerTries:
			w.try() // the shard has left this node meanwhile
		default:
			w.fail(err)
		}
	}
	if w.record != nil {
		made(nil)
		return
	}
	set := remote.Here()
	w.here, w.settled = "", false
	if set != nil {
		w.here, w.settled = p.node.id, set.Settled()
	}
	if !w.Deletes || w.settled {
		w.make(remote, set, made)
		return
	}
	p.lookUp(w.draft.Record.Key, func(f *Found) {
		err := f.Err
		if err == nil {
			err = remote.Holds(w.draft, true, f.Record)
		}
		if !f.Sure && (err != nil || f.Record == nil) {
			err = ErrUnsure
		}
		if err != nil {
			w.fail(err)
			return
		}
		w.draft.Seen = []*dbadapter.Record{f.Record}
		w.make(remote, set, made)
	})
}

// enough is how many hosts are to hold a record, or says why there are too few.
func enough(remote *node.Remote, ack route.Ack) (need int, err error) {
	hosts, err := remote.Hosts()
	if err != nil {
		return 0, err
	}
	if need, err = ack.Of(remote.Named()); err == nil && need > len(hosts) {
		err = ErrUnreachable
	}
	return need, err
}

// make makes the record, and holds it here if this node is a host.
func (w *offer) make(remote *node.Remote, set *node.Set, made func(error)) {
	p := w.process
	if set == nil {
		record, err := remote.Make(w.draft)
		if err == nil {
			w.record = record
			w.Made(record.Version)
		}
		made(err)
		return
	}
	sh := p.of(set)
	if sh == nil {
		made(reconcile.ErrBusy) // it is being opened
		return
	}
	p.flush()
	attempt, err := set.Write(w.draft)
	if w.Deletes {
		attempt, err = set.Delete(w.draft.Record.Key, w.draft.Seen...)
	}
	if err != nil {
		made(err)
		return
	}
	sh.carry(attempt, 1, func(_ int, version dbadapter.Version, err error) {
		if err == nil {
			w.record, w.taken = attempt.Record(0), true
			w.Made(version)
		}
		made(err)
	})
}

// again has the record made anew, over what hosts hold in its place, and reports whether it
// may be.
func (w *offer) again(others []*dbadapter.Record) bool {
	switch {
	case !w.Deletes:
		w.draft.Seen = append(slices.Clone(w.draft.Seen), append(others, w.record)...)
	case w.taken:
		return false
	}
	w.record = nil
	return true
}

// handed follows what hosts have done with the record.
func (w *offer) handed(written *route.Written, err error) {
	p := w.process
	w.taken = w.taken || written.Taken()
	switch {
	case err == nil:
		p.routing--
		var hosts []int
		for _, h := range written.Hosts {
			if h.Outcome != nil && h.Outcome.Held {
				hosts = append(hosts, p.node.cluster.byID[h.Peer].number)
			}
		}
		w.Held(w.record.Version, hosts)
	case w.tries >= offerTries, errors.Is(err, route.ErrOvertaken) && !w.again(written.Others):
		w.fail(err)
	case errors.Is(err, route.ErrOvertaken):
		w.try()
	case w.heeded:
		w.fail(err)
	default:
		w.heeded = true
		p.heed(p.refusals(written), written.Moved, written.MovedBy, func(heard bool) {
			if !heard {
				w.fail(err)
				return
			}
			if !w.taken {
				w.record = nil // the list may give another version to it
			}
			w.try()
		})
	}
}

// refusals are why hosts have not taken a record.
func (p *process) refusals(w *route.Written) map[int]error {
	why := map[int]error{}
	for _, h := range w.Hosts {
		switch o := h.Outcome; {
		case o == nil && h.Err != nil:
			why[p.node.cluster.byID[h.Peer].number] = h.Err
		case o != nil && o.Declined != nil:
			why[p.node.cluster.byID[h.Peer].number] = o.Declined
		}
	}
	return why
}

// hand drives the write of a record to the hosts of its shard. Requests that are under way
// at its end go on: a host that takes the record later holds it.
func (w *offer) hand(remote *node.Remote) {
	p, record := w.process, w.record
	n := p.node
	hosts, err := remote.Hosts()
	if err != nil {
		w.handed(&route.Written{}, err)
		return
	}
	put, err := route.NewPut(hosts, w.here, w.settled, route.Ack(w.need), n.world.Now()+routePatience, n.world.Now())
	if err != nil {
		w.handed(&route.Written{}, err)
		return
	}
	if w.here != "" && w.need <= 1 { // a push brings it to the others
		w.handed(&route.Written{Held: 1, Hosts: []route.Holder{{Peer: w.here, Outcome: &route.Outcome{Held: true}}}}, nil)
		return
	}
	put.Patient = w.Deletes
	d := &driver{process: p, next: put.Next}
	d.ask = func(peer route.ID) {
		to := n.cluster.byID[peer].number
		ask, err := remote.AskHold(peer, record)
		if err != nil {
			put.Failed(peer, err, false, n.world.Now())
			return
		}
		p.route(to, ask, func(m wire.Message, sent bool, err error) {
			if d.over {
				return
			}
			var o route.Outcome
			if err == nil {
				o, err = remote.Hold(peer, ask, m)
			}
			if err != nil {
				put.Failed(peer, err, sent, n.world.Now())
			} else {
				put.Answered(peer, o)
			}
			d.run()
		})
	}
	d.end = func(time.Duration) {
		written, err := put.Result()
		if err != nil {
			err = fmt.Errorf("%d of %d hosts hold it: %w", written.Held, written.Need, err)
		}
		w.handed(&written, err)
	}
	d.run()
}
