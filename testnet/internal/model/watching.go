package model

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Watches is told of what watches tell, and of the change logs that they are of.
type Watches interface {
	// Changed: the node's store has made a change, or has read it again at a start.
	Changed(node int, c *Changed)
	// Begun: a program begins to watch, or goes on from its cursor.
	Begun(w *Begun)
	// Told: the program has taken an event. It was read as of a change.
	Told(node int, program string, e *node.Watched, end uint64)
	// ToldAll: it has taken all up to where its watcher is, which read it as of a change.
	ToldAll(node int, program string, at node.Cursor, end uint64)
	// Expired: its cursor has expired. reaches reports whether the change log, which has
	// that id, goes back to a change.
	Expired(node int, program string, log dbadapter.LogID, reaches func(after uint64) bool)
	// Failed: its watch has ended with another error.
	Failed(node int, program string, err error)
}

// Changed is a change of a change log: what keys that share an index hold since.
type Changed struct {
	Log   dbadapter.LogID
	Seq   uint64
	Index dbadapter.Index
	Keys  [][]byte
	Held  []*dbadapter.Record // of each key; nil for nothing
}

// Begun is a watch of a program that begins.
type Begun struct {
	Node            int
	Program, Prefix string
	Cursor          node.Cursor
	// Now: the cursor is that of a watch from now on.
	Now bool
	// Log is the change log of the node, and End its last change.
	Log dbadapter.LogID
	End uint64
}

// Watching is how a program watches.
type Watching struct {
	// Program is its name at its node.
	Program string
	Prefix  string
	// FromStart: it begins with what is held. Else with what follows now; or, if it has
	// watched before, where it was, with the prefix that it had.
	FromStart bool
	// Pace is how long it rests after some events; 0: it takes all at once.
	Pace time.Duration
}

// program watches the namespace at a node. It outlives the node's processes: it keeps the
// cursor of the last event that it took, and goes on from there, or begins anew where the
// cursor has expired.
type program struct {
	Watching
	cursor node.Cursor
	on     bool
	at     *watch // nil without a connection
}

// watch is one connection of a program.
type watch struct {
	process *process
	of      *program
	w       *node.Watcher
	first   bool
	told    []node.Watched // that the program has not taken
	end     uint64         // as of which change they were read
	resting bool           // the program has taken some, and takes no more for a while
	waiting bool           // there was nothing more to tell
	quiet   time.Duration  // since when nothing was told
}

// The bounds of what watches do here.
const (
	watchAgain   = time.Second     // after which a program tries again: there is no namespace, or its cursor has expired
	watchQuiet   = 5 * time.Second // after which a program is told how far it has come
	feedWindows  = 6               // as few, so that slow programs read by themselves
	eventsAtOnce = 4               // that a slow program takes
)

// Watch makes a program begin to watch at the node, or go on.
func (n *Node) Watch(o Watching) {
	g := n.program(o.Program)
	if g == nil {
		g = &program{Watching: o}
		n.programs = append(n.programs, g)
	}
	g.Pace, g.on, g.at = o.Pace, true, nil
	if o.FromStart {
		g.Prefix, g.cursor = o.Prefix, node.FromStart
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
		g.Pace, g.on = 0, true
		if n.process == nil {
			continue
		}
		if g.at == nil {
			n.process.watchAfter(g, 0)
		} else {
			g.at.resting = false
			n.process.after(0, g.at.look)
		}
	}
}

// Behind names the programs that were not told everything, of a node that has the namespace.
func (n *Node) Behind() (names []string) { return n.watched(false) }

// Watched names those that were.
func (n *Node) Watched() (names []string) { return n.watched(true) }

func (n *Node) watched(all bool) (names []string) {
	if n.process == nil || n.process.ns == nil {
		return nil
	}
	for _, g := range n.programs {
		x := g.at
		so := x != nil && x.waiting && len(x.told) == 0 && !x.w.Listing() && x.w.At() == n.process.last()
		if so == all {
			names = append(names, g.Program)
		}
	}
	return names
}

func (n *Node) program(name string) *program {
	for _, g := range n.programs {
		if g.Program == name {
			return g
		}
	}
	return nil
}

// last is the last change of the log.
func (p *process) last() uint64 {
	_, _, seq := p.set.Live.State()
	return seq
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
	b := &Begun{Node: n.number, Program: g.Program, Prefix: g.Prefix, Now: g.cursor == "", Log: p.store.Log(), End: p.last()}
	var w *node.Watcher
	var err error
	if b.Now { // as peer's Namespace.Cursor, or what came before the first event could be missed
		if w, err = p.set.NewWatcher("", nil); err == nil {
			g.cursor = w.Cursor()
		}
	}
	if err == nil {
		w, err = p.set.NewWatcher(g.cursor, []byte(g.Prefix))
	}
	if err == nil && p.feeding == nil {
		p.feeding, err = p.set.NewWatcher("", nil)
	}
	if err != nil {
		n.cluster.Watches.Failed(n.number, g.Program, err)
		return
	}
	b.Cursor = g.cursor
	n.cluster.Watches.Begun(b)
	g.at = &watch{process: p, of: g, w: w, first: true, quiet: n.world.Now()}
	g.at.look()
}

// changed is called after each commit.
func (p *process) changed(c *Changed) {
	p.node.cluster.Watches.Changed(p.node.number, c)
	if p.feeding != nil && !p.fed {
		p.fed = true
		p.after(0, p.feed) // the namespace's locks are held
	}
}

// feed reads the end of the log for all programs, as peer's feed does, and wakes those that
// wait.
func (p *process) feed() {
	p.fed = false
	for {
		win, err := p.feeding.Read(context.Background())
		if err != nil {
			p.feeding, p.windows = nil, nil // programs meet the error by themselves
			break
		}
		if win.To == win.From {
			break
		}
		p.feeding.Skip(win)
		p.windows = append(p.windows, win)
		p.windows = p.windows[max(0, len(p.windows)-feedWindows):]
	}
	if p.feeding == nil {
		p.feeding, _ = p.set.NewWatcher("", nil) // it reads no cursor
	}
	for _, g := range p.node.programs {
		if g.at != nil && g.at.waiting {
			g.at.look()
		}
	}
}

// look lets the program take what there is to tell, until it rests or waits.
func (x *watch) look() {
	for x.of.at == x && !x.resting {
		if len(x.told) == 0 && !x.read() {
			return
		}
		x.take()
	}
}

// read reads what comes next. It reports false if there is nothing, or the watch has ended.
func (x *watch) read() bool {
	p := x.process
	ctx := context.Background()
	x.waiting = false
	var win *node.Window
	var err error
	if x.w.Listing() {
		x.told, err = x.w.List(ctx, nil)
		x.end = p.last()
	} else if win, err = x.window(ctx); err == nil {
		x.told, x.end = x.w.Take(win, nil), win.End
		if win.To == win.From {
			x.waiting = true
			return x.progress()
		}
	}
	x.first = false
	if err != nil {
		x.ended(err)
		return false
	}
	return true
}

// window is one that others have read already, or the watcher's own.
func (x *watch) window(ctx context.Context) (*node.Window, error) {
	if !x.first { // whether its cursor is of this log at all, the others do not tell
		for _, win := range x.process.windows {
			if x.w.Has(win) {
				return win, nil
			}
		}
	}
	return x.w.Read(ctx)
}

// progress tells the program how far it has come, if it was told nothing for long.
func (x *watch) progress() bool {
	if x.process.node.world.Now() < x.quiet+watchQuiet {
		return false
	}
	x.told = []node.Watched{{Kind: node.AtKind, Cursor: x.w.Cursor()}}
	return true
}

// take hands the program some events, or all.
func (x *watch) take() {
	p := x.process
	n := p.node
	count := len(x.told)
	if x.of.Pace > 0 {
		n.taken++
		count = min(count, 1+int(n.world.Draw(sim.ForWatch, uint64(n.number), 1<<32, n.taken)%eventsAtOnce))
	}
	for i := range x.told[:count] {
		e := &x.told[i]
		x.of.cursor = e.Cursor
		x.quiet = n.world.Now()
		n.cluster.Watches.Told(n.number, x.of.Program, e, x.end)
	}
	if count > 0 {
		n.world.Note("told", n.number, count, []byte(x.of.cursor))
	}
	if x.told = x.told[count:]; len(x.told) == 0 {
		n.cluster.Watches.ToldAll(n.number, x.of.Program, x.w.Cursor(), x.end)
	}
	if x.of.Pace > 0 && count > 0 {
		x.resting = true
		p.after(x.of.Pace, func() {
			x.resting = false
			x.look()
		})
	}
}

// ended is what becomes of a watch that the node ends.
func (x *watch) ended(err error) {
	p, g := x.process, x.of
	n := p.node
	g.at = nil
	if !errors.Is(err, node.ErrCursorExpired) {
		n.cluster.Watches.Failed(n.number, g.Program, err)
		return
	}
	n.cluster.Watch.Refused(n.number, err)
	n.world.Note("expired", n.number, 0, []byte(g.cursor))
	n.cluster.Watches.Expired(n.number, g.Program, p.store.Log(), func(after uint64) bool {
		for _, err := range p.store.Changes(context.Background(), after) {
			return err == nil
		}
		return after == p.last()
	})
	g.cursor = node.FromStart
	p.watchAfter(g, max(g.Pace, watchAgain))
}
