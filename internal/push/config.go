package push

import (
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Config says how what a node writes is pushed to the other members. A zero field takes
// its default.
type Config struct {
	// On: the driver carries pushes.
	On bool
	// Batch is how long a write waits for others to share its message. Default 5 ms.
	Batch time.Duration
	// Quiet is for how long a set must not have changed before its digest is sent.
	// Default 1 s.
	Quiet time.Duration
	// Busy is after what time from a push a node sends the number of its last one
	// although the set is not quiet. It is drawn from half of Busy to one and a
	// half. So a member that has missed the push learns of it. Default 6 s: a set
	// that is quiet sends its digest before.
	Busy time.Duration
	// Pause is the least time between two syncs with a peer that pushes bring about.
	// Default 500 ms.
	Pause time.Duration
	// Rate is how many bytes of records are pushed in a second, at most, and a
	// quarter of it at once. For what is beyond, a sync is asked for. Default 4
	// MiB.
	Rate int
	// Send, if not 0, is how many bytes all copies of pushes that the node sends take in a
	// second, at most.
	Send int
}

// WithDefaults has the default in each field that is zero.
func (c Config) WithDefaults() Config {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Batch, 5 * time.Millisecond}, {&c.Quiet, time.Second}, {&c.Busy, 6 * time.Second}, {&c.Pause, 500 * time.Millisecond}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if c.Rate == 0 {
		c.Rate = Rate
	}
	return c
}

// Rate is the default of Config.Rate.
const Rate = 4 << 20

// MeshCopies is how many copies of a push its origin sends at most where others
// pass it on. The driver's mesh has no more peers.
const MeshCopies = 4

// rate is how many bytes of records are pushed in a second.
func (p *Pusher) rate() int {
	c := p.set.Config
	if c.Send == 0 {
		return c.Rate
	}
	copies := p.set.Others()
	if copies >= wire.MaxDirect {
		copies = MeshCopies
	}
	return min(c.Rate, c.Send/max(copies, 1))
}
