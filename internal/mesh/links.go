package mesh

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// links keeps a node that pushes connected to some members of each namespace, from its
// start on and where a connection ends. Syncs at intervals connect to all of them, but
// that takes a minute.
type links struct {
	mesh  *Mesh
	wake  chan struct{} // holds a token once a namespace was opened
	rests map[peer.ID]*linkRest
}

// linkRest keeps from dialling a member too often that cannot be reached, or that ends
// its connections.
type linkRest struct {
	length time.Duration
	until  time.Time
}

const (
	// leastLinkRest is the pause after a member was dialled for the first time. Each
	// following one is twice as long, up to an interval of background syncs.
	leastLinkRest = time.Second
	// linkCheck is how often links are looked at where nothing says that one is missing.
	linkCheck = 10 * time.Second
)

// keep runs until the node closes. It dials on goroutines apart from its own. So a member
// that does not answer holds up no word of the others, nor the host, which waits for those
// that hear it.
func (l *links) keep() {
	m := l.mesh
	changes, err := m.cfg.Host.EventBus().Subscribe(new(event.EvtPeerConnectednessChanged), eventbus.BufSize(64))
	if err != nil {
		m.cfg.Log.Error("connections to members are made by syncs at intervals only", slog.Any("error", err))
		return
	}
	defer changes.Close()
	timer := time.NewTimer(jitter(leastLinkRest / 2))
	defer timer.Stop()
	made := make(chan time.Duration, 1)
	making, again := false, false // again: there is a reason to look since the dials began
	defer func() {
		if making {
			<-made
		}
	}()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-l.wake:
			again = true
			timer.Reset(jitter(leastLinkRest / 2))
		case e, ok := <-changes.Out():
			if !ok {
				return // the host is closed
			}
			switch link := e.(event.EvtPeerConnectednessChanged); link.Connectedness {
			case network.Connected:
				for _, f := range m.followers() {
					f.Set.Pushes().Linked(node.ID(link.Peer))
				}
			case network.NotConnected:
				again = true
				timer.Reset(leastLinkRest/4 + jitter(leastLinkRest/2)) // others lose theirs, too
			}
		case <-timer.C:
			if making {
				timer.Reset(leastLinkRest)
				continue
			}
			making, again = true, false
			go func() { made <- l.make() }()
		case wait := <-made:
			if making = false; !again {
				timer.Reset(wait)
			}
		}
	}
}

// make dials members until there are links enough, and returns when to look again.
func (l *links) make() (wait time.Duration) {
	m, now := l.mesh, time.Now()
	missing, wait := l.missing(now)
	var dialled sync.WaitGroup
	for _, id := range missing {
		r := l.rests[id]
		if r == nil {
			r = &linkRest{length: leastLinkRest / 2}
			l.rests[id] = r
		}
		r.length = min(2*r.length, max(leastLinkRest, m.cfg.Interval))
		r.until = now.Add(r.length/2 + jitter(r.length))
		wait = min(wait, r.length)
		dialled.Go(func() { _ = m.cfg.Host.Dial(m.ctx, id, nil) }) // syncs at intervals report it
	}
	dialled.Wait()
	return wait
}

// missing are the members to be dialled now. They are so many that each namespace has as
// many links as its mesh wants. Where pushes go directly, they are all that have no link.
// wait is when to look again.
func (l *links) missing(now time.Time) (missing []peer.ID, wait time.Duration) {
	m := l.mesh
	wait = linkCheck
	chosen, connections := map[peer.ID]bool{}, len(m.cfg.Host.Network().Peers())
	for _, f := range m.followers() {
		want := meshDegree
		members, _ := f.Set.Audience()
		if len(members) <= wire.MaxDirect && connections+len(chosen) < m.cfg.Connections/2 {
			want = len(members) // beyond, GossipSub passes pushes on
		}
		var others []peer.ID
		for member := range members {
			id := peer.ID(member)
			switch r := l.rests[id]; {
			case id == m.host.ID() || f.Set.Namespace().PausedWith(member) != nil:
			case m.cfg.Host.Connected(id) || chosen[id]:
				want--
				if r != nil && now.After(r.until) {
					delete(l.rests, id)
				}
			case !m.cfg.Host.Known(id):
			case r != nil && now.Before(r.until):
				wait = min(wait, r.until.Sub(now))
			default:
				others = append(others, id)
			}
		}
		rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		for _, id := range others[:max(0, min(want, len(others)))] {
			chosen[id] = true
			missing = append(missing, id)
		}
	}
	return missing, wait
}

// opened says that a set begins to push. It has heard of none of the links that there are
// already.
func (l *links) opened(ctx context.Context, set *node.Set) {
	for _, id := range l.mesh.cfg.Host.Network().Peers() {
		if ctx.Err() == nil {
			set.Pushes().Linked(node.ID(id))
		}
	}
	machine.Wake(l.wake)
}

// jitter is a time up to d, so that nodes that start together do not act together.
func jitter(d time.Duration) time.Duration { return rand.N(d) }
