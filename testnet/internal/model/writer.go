package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a process keeps and does where the placement is writer: its locator, which follows the hosts
// of the directory, and node.ByWriter, of which this is the driver.

const (
	// feedEvery is how often each host of the directory is polled, and meetEvery how often it is
	// looked whether first writes have met. Both are as in package peer.
	feedEvery = 2 * time.Second
	meetEvery = 500 * time.Millisecond
	// clockFrom is what the locator's clock begins with: what was heard before must be old.
	clockFrom = time.Hour
)

// writer is a process's state of such a namespace.
type writer struct {
	process *process
	locator *directory.Locator
	decides *node.ByWriter
	tellers *node.Tellers
	files   map[string][]byte // of the locator: a process that starts fetches the directory anew
	asking  map[node.ID]bool  // that are being polled
	meeting bool
}

// Read implements directory.Disk.
func (w *writer) Read(name string) ([]byte, error) { return w.files[name], nil }

// Write implements directory.Disk.
func (w *writer) Write(name string, data []byte) error {
	w.files[name] = slices.Clone(data)
	return nil
}

// openWriter opens what the process follows of the directory.
func (p *process) openWriter() (err error) {
	w := &writer{process: p, files: map[string][]byte{}, asking: map[node.ID]bool{}}
	w.decides = p.ns.NewByWriter(w)
	w.locator, err = directory.New(directory.Config{
		Shards: p.ns.Rule().Shards, Seed: p.draw(node.ForNonce), Disk: w, Workers: 1,
		Here: func(s placement.Shard) bool {
			return slices.ContainsFunc(p.shards, func(sh *shard) bool { return sh.set.Shard() == s && sh.set.Settled() })
		},
		Met: w.decides.HeardOf,
	})
	if err != nil {
		return fmt.Errorf("open the locator: %w", err)
	}
	p.writer = w
	p.after(feedEvery, w.poll)
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

func (w *writer) now() time.Duration { return clockFrom + w.process.node.world.Now() }

// poll polls each host of the directory that is not being polled, and does it again.
func (w *writer) poll() {
	p := w.process
	p.after(feedEvery, w.poll)
	if t := p.ns.Tellers(); t != w.tellers {
		w.tellers = t
		w.locator.SetHosts(t.Layout, t.Of)
	}
	for _, id := range w.tellers.All {
		if !w.asking[id] {
			w.asking[id] = true
			w.follow(id)
		}
	}
	w.work()
}

// follow asks a host what is new, and for sets that are missing, until there is no more.
func (w *writer) follow(id node.ID) {
	poll, sent := w.locator.Poll(id), w.now()
	w.tell(id, poll, func(m directory.Message) {
		news, ok := m.(*directory.News)
		switch {
		case !ok || w.refused(w.locator.News(id, poll, news, sent)):
			delete(w.asking, id)
		case news.More:
			w.follow(id)
		default:
			w.take(id)
		}
	})
}

// take asks a host for a part of a set, if one is missing.
func (w *writer) take(id node.ID) {
	take := w.locator.Take(id, w.now())
	if take == nil {
		delete(w.asking, id)
		w.work()
		return
	}
	w.tell(id, take, func(m directory.Message) {
		block, ok := m.(*directory.Block)
		if !ok {
			w.locator.TakeFailed(id, take.Home)
			delete(w.asking, id)
			return
		}
		if w.refused(w.locator.Block(id, take, block, w.now())) {
			delete(w.asking, id)
			return
		}
		w.follow(id) // for what has happened meanwhile
	})
}

func (w *writer) refused(err error) bool {
	w.process.refused(err)
	return err != nil
}

// tell asks a host, which may be this node; nil: it has not answered.
func (w *writer) tell(id node.ID, m directory.Message, done func(directory.Message)) {
	p := w.process
	if id == p.node.id {
		p.flush() // so that only what is durable is told
		answer, err := p.ns.Tell(context.Background(), m, nil)
		p.refused(err)
		done(answer)
		return
	}
	ask, err := p.ns.AskFeed(id, m)
	if err != nil {
		done(nil)
		return
	}
	p.route(p.node.cluster.byID[id].number, ask, func(answer wire.Message, _ bool, err error) {
		if err != nil {
			done(nil)
			return
		}
		told, err := p.ns.Feed(id, ask, answer)
		p.refused(err)
		done(told)
	})
}

// work does the locator's work, which takes no time here.
func (w *writer) work() {
	for run := w.locator.Work(); run != nil; run = w.locator.Work() {
		w.process.refused(run())
	}
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
		done(f)
	})
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
func (w *writer) Hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, here node.ID, settled bool, need int) (written route.Written, err error) {
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	now := w.process.node.world.Now()
	put, err := route.NewPut(hosts, here, settled, route.Ack(need), now+routePatience, now)
	if err != nil {
		return route.Written{}, err
	}
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
