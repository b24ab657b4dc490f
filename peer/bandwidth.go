package peer

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bandwidth bounds how many bytes a second the syncs and the pushes of a node move. It
// bounds what this node sends and what it receives each by itself, as most links carry
// both at once. 0 means no bound; another value is at least MinBandwidth. Counted is what
// syncs write and read, on both sides' calls, and pushes, those that are passed on too.
// Not counted are what TCP, QUIC and encryption add (a few per cent), handshakes, joins,
// and what a relay service carries for others. A push that waits for too long is dropped,
// and a sync brings what it held. Of its own writes a node pushes no more than half of
// Send.
//
// A bound also narrows how many syncs run at once: one that this node began and one
// that its peers began for each MinBandwidth. So each keeps a rate at which no peer
// thinks that it has stalled.
type Bandwidth struct {
	// Send and Receive are for all peers together.
	Send, Receive int64
	// PeerSend and PeerReceive are for each peer.
	PeerSend, PeerReceive int64
}

// MinBandwidth is the least bound, in bytes a second.
const MinBandwidth = 2 * leastShare

const (
	// leastShare is what each sync under a bound is left, in bytes a second. It is
	// twice the default of Limits.MinRate, below which a peer cuts a sync off.
	leastShare = 32 << 10
	// meteredBytes pass a bound at once, at most. So several streams take turns, and a
	// message that says "working" waits for half a second at the most.
	meteredBytes = 16 << 10
	// burstPart of a second's bytes may pass at once after a pause. It is no less than
	// meteredBytes at MinBandwidth.
	burstPart = 4
)

func (b *Bandwidth) check() error {
	for what, limit := range map[string]int64{"Send": b.Send, "Receive": b.Receive, "PeerSend": b.PeerSend, "PeerReceive": b.PeerReceive} {
		if limit != 0 && limit < MinBandwidth {
			return fmt.Errorf("%w: Bandwidth.%s is %d bytes a second; it is at least %d, or 0 for no bound", ErrInvalid, what, limit, MinBandwidth)
		}
	}
	return nil
}

// narrow leaves each sync its share of the bounds.
func (b *Bandwidth) narrow(l Limits) Limits {
	l.Sessions = narrowed(l.Sessions, b.Send, b.Receive)
	l.SessionsPerPeer = narrowed(l.SessionsPerPeer, b.PeerSend, b.PeerReceive)
	return l
}

// ownPerPeer is how many syncs of its own a node has with one peer at once.
func (b *Bandwidth) ownPerPeer(l Limits) int {
	return narrowed(l.Sessions, b.PeerSend, b.PeerReceive)
}

func narrowed(n int, limits ...int64) int {
	for _, limit := range limits {
		if limit > 0 {
			n = max(1, int(min(int64(n), limit/MinBandwidth)))
		}
	}
	return n
}

// throttle is what the bytes of a stream pass in one direction: the bound of its peer, and
// that of the node. The zero value has no bound.
type throttle struct {
	limiters []*rate.Limiter
	waited   func(time.Duration)
}

// wait waits until n bytes, at most meteredBytes, may pass, and returns for how long. It
// returns at once when done is closed.
func (m *throttle) wait(n int, done <-chan struct{}) (waited time.Duration) {
	for _, l := range m.limiters {
		now := time.Now()
		d := l.ReserveN(now, n).DelayFrom(now)
		if d <= 0 {
			continue
		}
		waited += d
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return waited
		}
	}
	if waited > 0 {
		m.waited(waited)
	}
	return waited
}

// throttles are the two directions of a stream.
type throttles struct{ send, receive throttle }

// bandwidth holds a node to its bounds.
type bandwidth struct {
	limits        Bandwidth
	send, receive *rate.Limiter // nil: no bound
	waited        func(direction string, d time.Duration)

	mu    sync.Mutex // guards what follows
	peers map[ID]*peerThrottles
}

// peerThrottles are the bounds of one peer.
type peerThrottles struct {
	send, receive *rate.Limiter
	streams       int // that use them
}

// newBandwidth reports to waited for how long bytes have waited, in the direction
// "sent" or "received".
func newBandwidth(limits Bandwidth, waited func(direction string, d time.Duration)) *bandwidth {
	return &bandwidth{
		limits: limits, send: limiter(limits.Send), receive: limiter(limits.Receive), waited: waited,
		peers: map[ID]*peerThrottles{},
	}
}

func limiter(limit int64) *rate.Limiter {
	if limit == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(limit), int(limit/burstPart))
}

// of is what a stream with a peer passes. release must be called when it is over.
func (b *bandwidth) of(id ID) (m throttles, release func()) {
	m.send.waited = func(d time.Duration) { b.waited("sent", d) }
	m.receive.waited = func(d time.Duration) { b.waited("received", d) }
	release = func() {}
	if b.limits.PeerSend > 0 || b.limits.PeerReceive > 0 {
		var p *peerThrottles
		p, release = b.peer(id)
		m.send.add(p.send)
		m.receive.add(p.receive)
	}
	m.send.add(b.send)
	m.receive.add(b.receive)
	return m, release
}

func (m *throttle) add(l *rate.Limiter) {
	if l != nil {
		m.limiters = append(m.limiters, l)
	}
}

// peer are the bounds of a peer. Those that no stream uses are forgotten once they are
// as good as new, so that what strangers make is little.
func (b *bandwidth) peer(id ID) (p *peerThrottles, release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, p := range b.peers {
		if p.streams == 0 && isFull(p.send) && isFull(p.receive) {
			delete(b.peers, other)
		}
	}
	p = b.peers[id]
	if p == nil {
		p = &peerThrottles{send: limiter(b.limits.PeerSend), receive: limiter(b.limits.PeerReceive)}
		b.peers[id] = p
	}
	p.streams++
	return p, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		p.streams--
	}
}

func isFull(l *rate.Limiter) bool { return l == nil || l.Tokens() >= float64(l.Burst()) }
