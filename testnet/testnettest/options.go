package testnettest

import (
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/testnet/internal/nodes"
)

// Option changes what New makes.
type Option func(*nodes.Config)

// Memory keeps the records in memory, not in a database on disk. They still outlive
// restarts and kills of their node.
func Memory() Option { return func(c *nodes.Config) { c.Memory = true } }

// Policy is the shared namespace's. Default: signed, five minutes of skew.
func Policy(p peer.Policy) Option { return func(c *nodes.Config) { c.Policy = p } }

// Background makes the nodes sync by themselves, each with every other, at this
// mean interval. AssertConverged then waits for them. Default: no background
// syncs; the test, the application or AssertConverged begins each sync.
func Background(interval time.Duration) Option {
	return func(c *nodes.Config) { c.Interval = interval }
}

// Limits are those of each node. Default: those of package peer, with 5 seconds
// for a dial and for a silent peer.
func Limits(l peer.Limits) Option { return func(c *nodes.Config) { c.Limits = l } }

// MaxHeap bounds the live heap of the test process, in bytes, at each
// AssertConverged. Default: 256 MiB and 128 MiB for each node.
func MaxHeap(bytes int64) Option { return func(c *nodes.Config) { c.MaxHeap = bytes } }
