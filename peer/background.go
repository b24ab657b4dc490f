package peer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/syncd-io/syncd/dbadapter"
)

// background syncs every namespace with each of its members, until the node
// closes. Each peer has a lane of its own, so that one that dawdles keeps none
// of the others waiting.
func (n *Node) background(interval time.Duration) {
	defer n.gate.leave()
	var running sync.WaitGroup
	defer running.Wait()
	lanes := map[ID]*lane{}
	places := make(chan struct{}, max(1, n.limits.Sessions/2)) // the rest is for who asks for a sync
	for n.pause(jitter(interval)) {
		for id, shared := range n.partners() {
			l := lanes[id]
			if l == nil {
				l = newLane(interval)
				lanes[id] = l
			}
			if !l.running.CompareAndSwap(false, true) {
				continue // still at the last round
			}
			running.Go(func() {
				defer l.running.Store(false)
				select {
				case places <- struct{}{}:
					defer func() { <-places }()
				case <-n.ctx.Done():
					return
				}
				for _, ns := range shared {
					if n.ctx.Err() != nil {
						return
					}
					l.attempt(ns.keys.ID, func() (reached bool, err error) {
						err = patiently(n.ctx, patience*n.limits.IdleTimeout, func(ctx context.Context, progress func(Report)) error {
							_, err := ns.Sync(ctx, id, SyncOptions{Progress: progress})
							return err
						})
						return n.connected(id), err
					})
				}
			})
		}
	}
}

// partners are the peers that there is a way to reach, with the namespaces that
// they are members of.
func (n *Node) partners() map[ID][]*Namespace {
	out := map[ID][]*Namespace{}
	for _, ns := range n.Namespaces() {
		for _, m := range ns.Members() {
			if m.ID != n.self.id && n.known(m.ID) {
				out[m.ID] = append(out[m.ID], ns)
			}
		}
	}
	return out
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

// patience is for how many idle time-outs a sync that no caller waits for may go
// on without getting anywhere. The time-out alone does not end one whose peer says nothing
// in many messages; a fixed time would end a large one that is well under way.
const patience = 10

// errStalled ends a sync that gets nowhere.
var errStalled = errors.New("the peer answers, but the sync gets nowhere")

// patiently runs a sync for as long as its report changes at least once in d.
func patiently(ctx context.Context, d time.Duration, sync func(ctx context.Context, progress func(Report)) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(d, func() { cancel(errStalled) })
	defer timer.Stop()
	type work struct {
		cells, found, applied, sent, rejected, working int
		records                                        int64
	}
	var last work
	return sync(ctx, func(r Report) {
		now := work{r.Cells, r.Differences(), r.Applied, r.Sent, r.Rejected, r.Working, r.RecordBytes}
		if now != last {
			last = now
			timer.Reset(d)
		}
	})
}

// lane is the background syncs with one peer: one at a time, and with rests
// after those that failed.
type lane struct {
	running  atomic.Bool // who sets it may use the rest
	interval time.Duration
	whole    *rest // while the peer cannot be reached
	of       map[dbadapter.NamespaceID]*rest
}

func newLane(interval time.Duration) *lane {
	return &lane{interval: interval, whole: newRest(interval), of: map[dbadapter.NamespaceID]*rest{}}
}

// attempt syncs a namespace unless it, or the peer, rests. A namespace that
// fails, since the peer has dropped it perhaps, says nothing of the others.
func (l *lane) attempt(ns dbadapter.NamespaceID, sync func() (reached bool, err error)) {
	r := l.of[ns]
	if r == nil {
		r = newRest(l.interval)
		l.of[ns] = r
	}
	if now := time.Now(); now.Before(l.whole.until) || now.Before(r.until) {
		return
	}
	reached, err := sync()
	failed := err != nil && !errors.Is(err, context.Canceled)
	away := failed && !reached && errors.Is(err, ErrUnreachable)
	l.whole.note(away)
	r.note(failed && !away)
}

// rest keeps from trying too often what fails: it grows up to eight intervals.
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

func (r *rest) note(failed bool) {
	if !failed {
		r.backoff.Reset()
		r.until = time.Time{}
		return
	}
	r.until = time.Now().Add(r.backoff.NextBackOff())
}
