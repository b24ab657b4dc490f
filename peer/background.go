package peer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// background syncs every namespace with each of its members in turn, one at a
// time, until the node closes. A peer that fails is left alone for longer and
// longer, up to eight intervals.
func (n *Node) background(interval time.Duration) {
	defer n.gate.leave()
	rests := map[ID]*rest{}
	for n.pause(jitter(interval)) {
		for _, ns := range n.Namespaces() {
			for _, m := range ns.Members() {
				if n.ctx.Err() != nil {
					return
				}
				if m.ID == n.self.id || !n.known(m.ID) {
					continue
				}
				r := rests[m.ID]
				if r == nil {
					r = newRest(interval)
					rests[m.ID] = r
				}
				r.attempt(func() error { _, err := ns.Sync(n.ctx, m.ID, SyncOptions{}); return err })
			}
		}
	}
}

// known reports whether there is a way to reach a peer.
func (n *Node) known(id ID) bool { return n.connected(id) || len(n.book.of(id)) > 0 }

// pause waits, and reports whether the node is still open.
func (n *Node) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// jitter spreads the syncs of many nodes that were started together: half the
// interval to one and a half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// rest keeps from trying a peer too often that cannot be reached.
type rest struct {
	backoff *backoff.ExponentialBackOff
	until   time.Time
}

func newRest(interval time.Duration) *rest {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = interval, 8*interval
	b.Reset()
	return &rest{backoff: b}
}

func (r *rest) attempt(sync func() error) {
	if time.Now().Before(r.until) {
		return
	}
	err := sync()
	if err == nil || errors.Is(err, context.Canceled) {
		r.backoff.Reset()
		r.until = time.Time{}
		return
	}
	r.until = time.Now().Add(r.backoff.NextBackOff())
}
