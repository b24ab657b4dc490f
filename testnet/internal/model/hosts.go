package model

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// hosts is the network of the shards, as package shards sees it: its loops are routines here.
type hosts struct{ process *process }

// requests are the shards, as the process reads and writes them.
func (p *process) requests() *shards.Shards {
	if p.hosts == nil {
		p.hosts = &shards.Shards{NS: p.ns, Net: hosts{p}, Random: func(n int64) int64 { return int64(p.draw(node.ForBusy) % uint64(n)) }}
	}
	return p.hosts
}

func (h hosts) Now() time.Duration { return h.process.node.world.Now() }

func (h hosts) Connected(id node.ID) bool { return h.process.node.cluster.byID[id].Up() }

func (h hosts) Ask(ctx context.Context, to node.ID, q wire.Question) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	p := h.process
	if ask, err = p.ns.Ask(to, q); err != nil {
		return nil, nil, false, err
	}
	frame, sent, err := p.exchange(ctx, p.node.cluster.byID[to], routePatience, serveRouted, wire.Append(nil, ask))
	if err == nil {
		m, _, err = read[wire.Message](frame)
	}
	return ask, m, sent, err
}

func (h hosts) SyncLists(ctx context.Context, with node.ID) error {
	p := h.process
	_, err := p.syncIn(ctx, p.bare(), p.node.cluster.byID[with].number, syncing.Ask{})
	return err
}

func (h hosts) Go(ctx context.Context, f func(ctx context.Context)) bool {
	if ctx.Err() != nil {
		return false
	}
	h.process.routine(f)
	return true
}

func (h hosts) Outlive(f func(ctx context.Context)) { h.process.routine(f) }

func (h hosts) Sleep(ctx context.Context, d time.Duration) error {
	if err := routineOf(ctx).await(func(done func()) { h.process.after(d, done) }); err != nil {
		return err
	}
	return ctx.Err()
}

// Changed sleeps: the simulated store wakes no watch.
func (h hosts) Changed(ctx context.Context, _ *node.Set, _ uint64, d time.Duration) error {
	return h.Sleep(ctx, d)
}

func (h hosts) Mailbox() shards.Mailbox { return &mailbox{box[func()]{process: h.process}} }

// mailbox is a box as package shards sees it.
type mailbox struct{ box[func()] }

func (m *mailbox) Take(ctx context.Context, until time.Duration) func() {
	note, err := m.take(ctx, until)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	return note
}

// runRequest runs a request of the shards at a node, once what was written before is durable,
// and then what it returns. A node that dies meanwhile does no more.
func (n *Node) runRequest(body func(ctx context.Context, s *shards.Shards) (tell func()), refused func(error)) {
	n.do(func(p *process) error {
		p.flush()
		p.routing++
		p.routine(func(ctx context.Context) {
			tell := body(ctx, p.requests())
			if ctx.Err() == nil {
				tell()
				p.routing--
			}
		})
		return nil
	}, refused)
}

// Found is what a read of a key at a node has come to.
type Found struct {
	shards.Found
	Node int
	Key  string
	// Err is why the level was not reached.
	Err error
	// From is the node at which the key's shard is followed, if it is nowhere, and Heard when that was asked.
	From  int
	Heard time.Duration
}

// Read reads a key at the hosts of its shard.
func (n *Node) Read(key string, o shards.GetOptions, told func(*Found)) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		found, err := s.Get(ctx, []byte(key), o)
		return func() {
			f := &Found{Found: found, Node: n.number, Key: key, Err: err}
			if found.Nowhere {
				status := s.Locator.Status(found.Shard, s.Net.Now())
				f.From, f.Heard = n.cluster.byID[status.From].number, status.Heard
			}
			told(f)
		}
	}, func(err error) { told(&Found{Node: n.number, Key: key, Err: err}) })
}

// scanRoom is that of the pages of a scan: small, so that a scan has several of a shard, and fetches some again.
const scanRoom = 32 << 10

// Scan reads all records, tombstones too.
func (n *Node) Scan(told func(records []dbadapter.Record, err error)) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		var all []dbadapter.Record
		var failed error
		for r, err := range s.Scan(ctx, shards.ScanOptions{Tombstones: true, Room: scanRoom}) {
			if failed = err; err == nil {
				all = append(all, r)
			}
		}
		return func() { told(all, failed) }
	}, func(err error) { told(nil, err) })
}

// Offer is a write in a namespace that is cut into shards: of one key, or of several of one shard.
type Offer struct {
	Drafts []node.Draft
	Level  quorum.Level
	// Made is called with the versions of each attempt, before a host hears of them.
	Made func(versions []dbadapter.Version)
	// Held is called at the end of a write that is acknowledged, with the nodes that hold it durably.
	// Failed, otherwise: written says that hosts may hold it.
	Held   func(versions []dbadapter.Version, hosts []int)
	Failed func(err error, written bool)
}

// Offer writes at any node.
func (n *Node) Offer(o Offer) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		w, err := s.Put(ctx, o.Drafts, shards.PutOptions{Level: o.Level, Made: o.Made})
		return func() {
			if err != nil {
				n.process.refused(err)
				o.Failed(err, errors.Is(err, shards.ErrUnconfirmed))
				return
			}
			var hosts []int
			for _, id := range w.Hosts {
				hosts = append(hosts, n.cluster.byID[id].number)
			}
			o.Held(w.Versions, hosts)
		}
	}, func(err error) { o.Failed(err, false) })
}

// Force has the node, an admin's, name what is left of shards that have lost a majority of their hosts.
func (n *Node) Force(forced func(shards []int, err error)) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		left, err := s.Force(ctx)
		var all []int
		for _, l := range left {
			all = append(all, l.Shard)
		}
		return func() { forced(all, err) }
	}, func(err error) { forced(nil, err) })
}

// Brought is what has become of items that were imported into shards.
type Brought struct {
	Result node.ImportResult
	// Refused are those that were refused for their dates, counted from 0.
	Refused []int64
	Err     error
}

// Bring imports items into a namespace that is cut into shards.
func (n *Node) Bring(items []node.Item, level quorum.Level, told func(*Brought)) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		b := &Brought{}
		o := shards.ImportOptions{Level: level, Refused: func(at int64, _ *node.Item) { b.Refused = append(b.Refused, at) }}
		b.Result, b.Err = s.Import(ctx, func(yield func(node.Item, error) bool) {
			for i := range items {
				if !yield(items[i], nil) {
					return
				}
			}
		}, o)
		return func() { told(b) }
	}, func(err error) { told(&Brought{Err: err}) })
}
