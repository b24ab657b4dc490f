package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// program watches the namespace at a node. It outlives the node's processes. It keeps the
// cursor of the last event that it took, and goes on from there, or begins anew where the
// cursor has expired.
type program struct {
	name string
	plan.Watching
	cursor changes.Cursor
	on     bool
	at     *watch // nil without a connection
}

// watch is one connection of a program to a namespace that is one shard.
type watch struct {
	box     mailbox // has a note once there was a commit
	waiting bool    // there is nothing more to tell
}

// The bounds of what watches do here.
const (
	watchAgain = time.Second     // after which a program tries again: there is no namespace, or its cursor has expired
	watchQuiet = 5 * time.Second // after which a program is told how far it has come
	// watchRoom is that of the pages of a watch of shards: small, so that some are asked for again.
	watchRoom = 8 << 10
)

// kinds are those of events, as the checker names them.
var kinds = map[changes.Kind]string{changes.Put: "put", changes.Delete: "delete", changes.Gone: "gone"}

// Watch makes a program begin to watch at the node, or go on.
func (n *Node) Watch(name string, o plan.Watching) {
	g := n.program(name)
	if g == nil {
		g = &program{name: name, Watching: o}
		n.programs = append(n.programs, g)
	}
	g.Pace, g.on, g.at = o.Pace, true, nil
	if o.FromStart {
		g.Prefix, g.cursor = o.Prefix, changes.FromStart
	}
	if n.process != nil {
		n.process.watchAfter(g, 0)
	}
}

// Unwatch ends a program's connection; it keeps its cursor.
func (n *Node) Unwatch(name string) {
	if g := n.program(name); g != nil {
		g.on, g.at = false, nil
	}
}

// WatchOn makes all programs of the node go on, as fast as they can.
func (n *Node) WatchOn() {
	for _, g := range n.programs {
		g.Pace, g.on, g.at = 0, true, nil
		if n.process != nil {
			n.process.watchAfter(g, 0)
		}
	}
}

// Programs are those that watch at the node, if it has the namespace.
func (n *Node) Programs() (names []string) {
	for _, g := range n.programs {
		if g.on && n.process != nil && n.process.ns != nil {
			names = append(names, g.name)
		}
	}
	return names
}

func (n *Node) program(name string) *program {
	for _, g := range n.programs {
		if g.name == name {
			return g
		}
	}
	return nil
}

// watchAll lets the node's programs connect to the process that has started.
func (p *process) watchAll() {
	for i, g := range p.node.programs {
		if g.on {
			p.watchAfter(g, time.Duration(p.node.world.Draw(sim.ForWatch, uint64(p.node.number), p.node.starts, uint64(i))%500)*time.Millisecond)
		}
	}
}

// watchAfter connects a program in a while, if it has no connection then.
func (p *process) watchAfter(g *program, wait time.Duration) {
	p.after(wait, func() {
		if g.on && g.at == nil {
			p.watch(g)
		}
	})
}

// watch begins a watch from a program's cursor.
func (p *process) watch(g *program) {
	n := p.node
	if p.ns == nil {
		if !n.cluster.resting {
			p.watchAfter(g, watchAgain)
		}
		return
	}
	x := &watch{box: mailbox{box[func()]{process: p}}}
	g.at = x
	p.routine(func(ctx context.Context) {
		// take hands the program an event, and reports whether it takes more.
		take := func(e *changes.Event, end uint64) bool {
			if ctx.Err() != nil || g.at != x {
				return false
			}
			g.cursor = e.Cursor
			n.cluster.Watched++
			n.cluster.History.Watched(n.number, g.name, &check.Event{
				Cursor: string(e.Cursor), At: e.Kind == changes.At, Kind: kinds[e.Kind], Key: string(e.Key), Record: e.Record, Coalesced: e.Coalesced, Read: end,
			})
			n.world.Note("told", n.number, 1, []byte(g.cursor))
			return g.Pace == 0 || hosts{p}.Sleep(ctx, g.Pace) == nil && g.at == x
		}
		follow := p.watchLog
		if p.cut() {
			follow = p.watchShards
		}
		if err := follow(ctx, g, x, take); ctx.Err() == nil && g.at == x {
			g.at = nil
			p.watchEnded(g, err)
		}
	})
}

// watchEnded is what becomes of a watch that the node ends.
func (p *process) watchEnded(g *program, err error) {
	n := p.node
	switch {
	case errors.Is(err, changes.ErrCursorExpired):
		n.cluster.Watch.Refused(n.number, err)
		n.world.Note("expired", n.number, 0, []byte(g.cursor))
		if p.cut() {
			n.cluster.Watch.Unwatched(n.number, g.name, err, 0, func(uint64) bool { return p.hasLogs(g.cursor) })
		} else {
			n.cluster.Watch.Unwatched(n.number, g.name, err, p.store.Log(), func(after uint64) bool { return reaches(p.set, after) })
		}
		g.cursor = changes.FromStart
	case !p.cut():
		n.cluster.Watch.Unwatched(n.number, g.name, err, 0, nil)
		return
	}
	p.watchAfter(g, max(g.Pace, watchAgain))
}

// watchLog watches the one set of a namespace that is not cut into shards.
func (p *process) watchLog(ctx context.Context, g *program, x *watch, take func(e *changes.Event, end uint64) bool) (err error) {
	n := p.node
	var w *changes.Watcher
	_, _, last := p.set.Live.State()
	b := &check.Watching{Node: n.number, Program: g.name, Prefix: g.Prefix, Now: g.cursor == "", Log: p.store.Log(), End: last}
	if b.Now { // as peer's Namespace.Cursor, or what came before the first event could be missed
		g.cursor = p.set.Watched().Cursor()
	}
	if w, err = p.set.Watched().Watcher(g.cursor, []byte(g.Prefix)); err != nil {
		return err
	}
	b.Cursor = string(g.cursor)
	n.cluster.History.Watching(b)
	for {
		before := w.Cursor()
		told, end, err := w.Next(ctx, nil)
		if err != nil {
			return err
		}
		for i := range told {
			if !take(&told[i], end) {
				return nil
			}
		}
		if n.cluster.History.WatchedAll(n.number, g.name, string(w.Cursor()), end); w.Cursor() != before {
			continue
		}
		x.waiting = true
		note := x.box.Take(ctx, n.world.Now()+watchQuiet)
		if ctx.Err() != nil || g.at != x || note == nil && !take(&changes.Event{Kind: changes.At, Cursor: w.Cursor()}, end) {
			return nil
		}
		x.waiting, x.box.notes = false, nil
	}
}

// changed is called after each commit, and of those before at each start.
func (p *process) changed(log dbadapter.LogID, c *check.Change) {
	p.node.cluster.History.Changed(p.node.number, log, c)
	for _, g := range p.node.programs {
		if g.at != nil && g.at.waiting {
			g.at.box.Put(func() {})
		}
	}
}

// watchShards watches a namespace that is cut into shards, each at any host of it.
func (p *process) watchShards(ctx context.Context, g *program, _ *watch, take func(e *changes.Event, end uint64) bool) (err error) {
	now, s := g.cursor == "", p.requests()
	if now {
		if g.cursor, err = s.Cursor(ctx); err != nil {
			return err
		}
	}
	p.node.cluster.History.Watching(&check.Watching{Node: p.node.number, Program: g.name, Prefix: g.Prefix, Cursor: string(g.cursor), Now: now})
	o := shards.WatchOptions{Options: changes.Options{Prefix: []byte(g.Prefix), Every: watchQuiet}, Room: watchRoom}
	return s.Watch(ctx, g.cursor, o, func(e *changes.Event) bool { return take(e, 0) })
}

// reaches reports whether the log of a set goes back to a change.
func reaches(set *node.Set, after uint64) bool {
	for _, err := range set.Store.Changes(context.Background(), after) {
		return err == nil
	}
	_, _, end := set.Live.State()
	return after == end
}

// hasLogs reports whether of each shard a whole host that runs has the log of a cursor, back to where that is. The
// process asks the hosts of the row by which it goes alone.
func (p *process) hasLogs(cursor changes.Cursor) bool {
	for i, place := range strings.Split(string(cursor), ",")[1:] {
		at, row := changes.Cursor(place), p.ns.Row(placement.Shard(i))
		if at != changes.FromStart && !slices.ContainsFunc(p.node.cluster.nodes, func(n *Node) bool {
			if n.process == nil || n.process.ns == nil || row == nil || !slices.Contains(row.Old, n.process.ns.Self()) {
				return false
			}
			set := n.process.ns.WholeHere(placement.Shard(i))
			return set != nil && at.MadeBy(set.Store.Log()) && reaches(set, at.Seq())
		}) {
			return false
		}
	}
	return true
}

// watchAnew is what a person does about a node whose files were put back as they were. The
// cursors that its logs made mean other changes, and their programs begin anew.
func (c *Cluster) watchAnew(of *Node) {
	for _, n := range c.nodes {
		for _, g := range n.programs {
			if g.cursor == "" || c.Rule == nil && n != of {
				continue
			}
			if g.cursor = changes.FromStart; g.at != nil {
				g.at = nil
				n.process.watchAfter(g, 0)
			}
		}
	}
}
