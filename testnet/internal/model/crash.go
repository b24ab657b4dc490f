package model

import (
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// crash is a crash that waits for a step of a session.
type crash struct {
	armed bool
	at    reconcile.Step
	// left is how many more writes and syncs of the disk the process begins before
	// it dies; 0: it is not counted.
	left int
	drew uint64
}

// struck is the panic that ends a process in the middle of its work.
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

// CrashAt makes the node crash when one of its sessions next enters the step. In
// the step apply the seed chooses the moment: the beginning, before or after any
// write to the disk, or the end.
func (n *Node) CrashAt(s reconcile.Step) { n.crash.armed, n.crash.at = true, s }

// enter is called for each step that a session of the node enters.
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

// guard runs a part of the node's work, and crashes the node if that panics with
// struck.
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

// after calls do in the process in d from now, or later if the process is frozen
// then; never if it has ended.
func (p *process) after(d time.Duration, do func()) *timer {
	t := &timer{}
	p.node.world.After(d, func() { p.due(t, do) })
	return t
}

// now calls do in the process at once, or later if the process is frozen.
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

// Disarm cancels a crash that CrashAt has set.
func (n *Node) Disarm() {
	n.crash.disarm()
	n.answering = false
}
