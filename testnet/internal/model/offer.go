package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
		draft := node.Draft{Record: dbadapter.Record{Key: []byte(o.Key), Value: o.Value, Deleted: o.Deletes}}
		w := &offer{Offer: o, process: p, decides: p.ns.Offer(draft, o.Deletes, o.Ack, p.node.world.Now)}
		p.flush()
		w.run()
	})
}

// offer is a write under way.
type offer struct {
	Offer
	process *process
	decides *node.Offering
	made    dbadapter.Version // that was told last
}

// run carries out what is decided, until something is to be waited for.
func (w *offer) run() {
	p, o := w.process, w.decides
	do := o.Next()
	if v := o.Version(); v != w.made {
		w.made = v
		w.Made(v)
	}
	written, err := o.Result()
	switch do {
	case node.OfferLookUp:
		p.lookUpAt([]byte(w.Key), o.All(), func(f *Found) {
			w.then(func() { o.LookedUp(node.LookedUp{Found: f.found}, f.Err) })
		})
	case node.OfferCommit:
		w.commit()
	case node.OfferHand:
		w.hand()
	case node.OfferHeed:
		p.heed(p.refusals(&written), written.Moved, written.MovedBy, func(heard bool) { w.then(func() { o.Heeded(heard) }) })
	case node.OfferOver:
		p.routing--
		if err == nil || o.Taken() {
			p.noticed([]byte(w.Key), true)
		}
		if err != nil {
			p.refused(err)
			w.Failed(err, o.Taken())
			return
		}
		var hosts []int
		for _, h := range written.Hosts {
			if h.Outcome != nil && h.Outcome.Held {
				hosts = append(hosts, p.node.cluster.byID[h.Peer].number)
			}
		}
		w.Held(o.Version(), hosts)
	}
}

// then tells what has come of a step, and goes on. What was written before is durable, so
// that what is made follows it.
func (w *offer) then(tell func()) {
	w.process.flush()
	tell()
	w.run()
}

// commit commits a record here, which is a host.
func (w *offer) commit() {
	o, sh := w.decides, w.process.of(w.decides.Set())
	if sh == nil {
		w.then(func() { o.Committed(reconcile.ErrBusy) }) // it is being opened
		return
	}
	sh.carry(o.Attempt(), 1, func(_ int, _ dbadapter.Version, err error) {
		o.Committed(err) // a flush is under way
		w.run()
	})
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
		case o != nil && o.Elsewhere:
			why[p.node.cluster.byID[h.Peer].number] = errNoHost
		}
	}
	return why
}

var errNoHost = errors.New("it is no host of the shard by its list")

// hand drives the write of a record to the hosts of its shard.
func (w *offer) hand() {
	p, o := w.process, w.decides
	now := p.node.world.Now()
	put, err := o.Put(now+routePatience, now)
	if err != nil {
		w.then(func() { o.Handed(route.Written{}, err, false) })
		return
	}
	p.hand(o.Remote(), o.Record(), put, func(written route.Written, err error) {
		w.then(func() { o.Handed(written, err, false) })
	})
}

// hand drives the write of a record to the hosts of its set. Requests that are under way
// at its end go on: a host that takes the record later holds it.
func (p *process) hand(remote *node.Remote, record *dbadapter.Record, put *route.Put, done func(route.Written, error)) {
	n := p.node
	d := &driver{process: p, next: put.Next}
	d.ask = func(peer route.ID) {
		to := n.cluster.byID[peer].number
		ask, err := remote.AskHold(peer, record, put.Manner)
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
			if o.Held {
				p.ns.HeldBy(record, peer)
			}
			if err != nil {
				put.Failed(peer, err, sent, n.world.Now())
			} else {
				put.Answered(peer, o, n.world.Now())
			}
			d.run()
		})
	}
	d.end = func(time.Duration) {
		written, err := put.Result()
		if err != nil {
			err = fmt.Errorf("%d of %d hosts hold it: %w", written.Held, written.Need, err)
		}
		done(written, err)
	}
	d.run()
}
