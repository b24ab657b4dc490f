package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// What a process does where the placement is writer, beside what it follows: node.ByWriter, of
// which this is the driver.

// meetEvery is how often it is looked whether first writes have met, as in package peer.
const meetEvery = 500 * time.Millisecond

// writer is a process's state of such a namespace.
type writer struct {
	*follower
	decides *node.ByWriter
	meeting bool
}

// openWriter opens what the process follows of the directory.
func (p *process) openWriter() error {
	w := &writer{}
	if err := p.openFollower(func(s placement.Shard) { w.decides.HeardOf(s) }); err != nil {
		return err
	}
	w.follower = p.follower
	w.decides = p.ns.NewByWriter(w)
	p.writer = w
	p.after(meetEvery, w.meet)
	return nil
}

// Follows reports whether the node knows what all hosts of a key's entry say of it, as of a few
// seconds before, and they agree; of a key that shares its index, which no feed tells of, whether all of
// those hosts have answered.
func (n *Node) Follows(key string) bool {
	p := n.process
	if p == nil || p.writer == nil {
		return false
	}
	a := p.writer.decides.WhereIs([]byte(key))
	return a.Decided() && a.Where != directory.OneOf || a.Shared && a.Answering
}

// meet looks whether first writes have met, and does it again.
func (w *writer) meet() {
	p := w.process
	p.after(meetEvery, w.meet)
	if w.meeting {
		return
	}
	w.meeting = true
	p.routine(func(ctx context.Context) {
		w.decides.Meet(ctx)
		w.meeting = false
	})
}

// readWritten reads a key.
func (p *process) readWritten(key []byte, done func(*Found)) {
	f := &Found{Node: p.node.number, Key: string(key)}
	p.routine(func(ctx context.Context) {
		found, err := p.writer.decides.LookUp(ctx, key, false)
		if ctx.Err() != nil {
			return // the process has died
		}
		f.Record, f.Sure, f.Requests, f.Err = found.Record, found.Sure, found.Requests, err
		f.By = p.toldBy(key, found.Heard)
		f.Nowhere = err == nil && found.Sure && found.Record == nil && found.Heard == nil && found.Requests == 0
		done(f)
	})
}

// toldBy are the nodes by which a read of a key goes: those that have answered, and those that tell of the key.
func (p *process) toldBy(key []byte, heard []route.Heard) (by []int) {
	for _, id := range p.ns.Tellers().Of[p.ns.Home(key)] {
		by = append(by, p.node.cluster.byID[id].number)
	}
	for _, h := range heard {
		if h.Answer != nil {
			by = append(by, p.node.cluster.byID[h.Peer].number)
		}
	}
	return by
}

// offerWritten writes a key.
func (p *process) offerWritten(o *Offer) {
	draft := node.Draft{Record: dbadapter.Record{Key: []byte(o.Key), Value: o.Value, Deleted: o.Deletes}}
	p.routine(func(ctx context.Context) {
		p.flush()
		w, err := p.writer.decides.Offer(ctx, draft, o.Deletes, o.Ack, o.Made)
		if ctx.Err() != nil {
			return
		}
		p.routing--
		if err != nil {
			p.refused(err)
			o.Failed(err, w.Taken)
			return
		}
		var hosts []int
		for _, h := range w.Hosts {
			if h.Outcome != nil && h.Outcome.Held {
				hosts = append(hosts, p.node.cluster.byID[h.Peer].number)
			}
		}
		o.Held(w.Version, hosts)
	})
}

// LookUpIn implements node.WriterDriver.
func (w *writer) LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (found node.LookedUp, err error) {
	var f *Found
	err = routineOf(ctx).await(func(done func()) {
		w.process.lookUpIn(in, key, all, func(of *Found) {
			f = of
			done()
		})
	})
	if err != nil {
		return node.LookedUp{Shard: in}, err
	}
	return node.LookedUp{Found: f.found, Shard: in}, f.Err
}

// Hand implements node.WriterDriver.
func (w *writer) Hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, here node.ID, settled bool, need int, how route.Manner) (written route.Written, err error) {
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	now := w.process.node.world.Now()
	put, err := route.NewPut(hosts, here, settled, route.Ack(need), now+routePatience, now)
	if err != nil {
		return route.Written{}, err
	}
	put.Manner = how
	var failed error
	err = routineOf(ctx).await(func(done func()) {
		w.process.hand(remote, record, put, func(of route.Written, err error) {
			written, failed = of, err
			done()
		})
	})
	if err == nil {
		w.process.flush()
		err = failed
	}
	return written, err
}

// Heed implements node.WriterDriver.
func (w *writer) Heed(ctx context.Context, written *route.Written) (heard bool) {
	p := w.process
	err := routineOf(ctx).await(func(done func()) {
		p.heed(p.refusals(written), written.Moved, written.MovedBy, func(of bool) {
			heard = of
			done()
		})
	})
	if err == nil {
		p.flush()
	}
	return heard && err == nil
}

// Each implements node.WriterDriver.
func (w *writer) Each(ctx context.Context, sets []placement.Shard, do func(placement.Shard)) {
	for _, set := range sets {
		if ctx.Err() != nil {
			return
		}
		do(set)
	}
}

// Connected implements node.WriterDriver.
func (w *writer) Connected(id node.ID) bool { return w.process.node.cluster.byID[id].Up() }

// Locator implements node.WriterDriver.
func (w *writer) Locator() *directory.Locator { return w.locator }

// Now implements node.WriterDriver.
func (w *writer) Now() time.Duration { return w.now() }

// Steady implements node.WriterDriver.
func (w *writer) Steady() time.Duration { return w.now() }

// Met implements node.WriterDriver.
func (w *writer) Met(what node.Meeting, shard placement.Shard, _ error) {
	n := w.process.node
	n.world.Note("met", n.number, int(shard), []byte{byte(what)})
	n.cluster.Watch.Met(n.number, what)
}
