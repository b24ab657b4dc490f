package model

import (
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// crash is the next one that is due at a step of a session.
type crash struct {
	armed bool
	at    reconcile.Step
	// left is how many more writes and syncs of the disk the process lives to
	// begin; 0 means that it is not counted.
	left int
	drew uint64
}

// struck is thrown where a process dies in the middle of something.
type struck struct{}

func (c *crash) disarm() { c.armed, c.left = false, 0 }

// count is called before each write and sync.
func (c *crash) count() {
	if c.left == 0 {
		return
	}
	if c.left--; c.left == 0 {
		panic(struck{})
	}
}

// CrashAt lets the node crash when a session of its next enters a step. The
// step apply is struck at its beginning, before or after any write to the disk
// that it makes, or at its end, as the seed says.
func (n *Node) CrashAt(s reconcile.Step) { n.crash.armed, n.crash.at = true, s }

// enter is told of each step that a session of the node enters.
func (n *Node) enter(s reconcile.Step) {
	c := &n.crash
	if !c.armed || c.at != s {
		return
	}
	c.armed = false
	if s == reconcile.StepApply {
		c.drew++
		c.left = int(n.world.Draw(sim.ForCrashPoint, uint64(n.number), c.drew, 0) % 6)
	}
	if c.left == 0 {
		panic(struck{})
	}
}

// guard runs a part of the node's work; if the node is struck in it, it
// crashes there.
func (n *Node) guard(do func()) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case struck:
			n.Crash()
		default:
			panic(r)
		}
	}()
	do()
}

// timer is an event of a process.
type timer struct{ stopped bool }

func (t *timer) stop() {
	if t != nil {
		t.stopped = true
	}
}

// after lets the process do something in d from now, unless it has ended by
// then; later, if it stands still then.
func (p *process) after(d time.Duration, do func()) *timer {
	t := &timer{}
	p.node.world.After(d, func() { p.due(t, do) })
	return t
}

// now lets the process do something at once; later, if it stands still.
func (p *process) now(do func()) { p.due(&timer{}, do) }

func (p *process) due(t *timer, do func()) {
	n := p.node
	switch {
	case t.stopped || n.process != p:
	case n.world.Now() < n.frozen:
		n.world.At(n.frozen, func() { p.due(t, do) })
	default:
		n.guard(do)
	}
}

// Disarm lets no crash happen that was to come.
func (n *Node) Disarm() { n.crash.disarm() }
