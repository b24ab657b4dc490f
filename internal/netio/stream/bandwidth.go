package stream

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

const (
	// meteredBytes pass a bound at once, at most. So several streams take turns, and a
	// message that says "working" waits for half a second at the most.
	meteredBytes = 16 << 10
	// burstPart of a second's bytes may pass at once after a pause. It is no less than
	// meteredBytes at 64 KiB a second, below which a node takes no bound.
	burstPart = 4
)

// Rates are the bounds of a node's bytes a second: of all peers together, and of each. 0
// means no bound.
type Rates struct{ Send, Receive, PeerSend, PeerReceive int64 }

// Bandwidth holds the streams of a node to its bounds. A nil Bandwidth has none.
type Bandwidth struct {
	rates         Rates
	send, receive *rate.Limiter // nil: no bound
	waited        func(direction string, d time.Duration)

	mu    sync.Mutex // guards what follows
	peers map[peer.ID]*peerLimiters
}

// peerLimiters are the bounds of one peer.
type peerLimiters struct {
	send, receive *rate.Limiter
	streams       int // that use them
}

// NewBandwidth reports to waited for how long bytes have waited, in the direction
// "sent" or "received".
func NewBandwidth(rates Rates, waited func(direction string, d time.Duration)) *Bandwidth {
	return &Bandwidth{
		rates: rates, send: limiter(rates.Send), receive: limiter(rates.Receive), waited: waited,
		peers: map[peer.ID]*peerLimiters{},
	}
}

func limiter(limit int64) *rate.Limiter {
	if limit == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(limit), int(limit/burstPart))
}

// peer are the bounds of a peer. Those that no stream uses are forgotten once they are
// as good as new, so that what strangers make is little.
func (b *Bandwidth) peer(id peer.ID) (p *peerLimiters, release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, p := range b.peers {
		if p.streams == 0 && isFull(p.send) && isFull(p.receive) {
			delete(b.peers, other)
		}
	}
	p = b.peers[id]
	if p == nil {
		p = &peerLimiters{send: limiter(b.rates.PeerSend), receive: limiter(b.rates.PeerReceive)}
		b.peers[id] = p
	}
	p.streams++
	return p, sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		p.streams--
	})
}

func isFull(l *rate.Limiter) bool { return l == nil || l.Tokens() >= float64(l.Burst()) }

// throttle is what the bytes of a stream pass in one direction: the bound of its peer, and
// that of the node. The zero value has no bound.
type throttle struct {
	limiters []*rate.Limiter
	waited   func(time.Duration)
}

func (t *throttle) add(l *rate.Limiter) {
	if l != nil {
		t.limiters = append(t.limiters, l)
	}
}

// most is how many of n bytes pass at once.
func (t *throttle) most(n int) int {
	if len(t.limiters) > 0 {
		n = min(n, meteredBytes)
	}
	return n
}

// wait waits until n bytes, at most meteredBytes, may pass, and returns for how long. It
// returns at once when done is closed.
func (t *throttle) wait(n int, done <-chan struct{}) (waited time.Duration) {
	for _, l := range t.limiters {
		now := time.Now()
		d := l.ReserveN(now, n).DelayFrom(now)
		if d <= 0 {
			continue
		}
		waited += d
		select {
		case <-time.After(d):
		case <-done:
			return waited
		}
	}
	if waited > 0 {
		t.waited(waited)
	}
	return waited
}

// Metered is a stream under the bounds of a Bandwidth. One goroutine reads, and one writes.
type Metered struct {
	network.Stream
	send, receive throttle
	release       func() // of the peer's bounds; it may be called again
	done          <-chan struct{}
	deadline      time.Time     // of writes
	waited        time.Duration // for how long reads have, in all
}

// Meter holds a stream to the bounds. What waits goes on at once when done is closed.
func (b *Bandwidth) Meter(s network.Stream, done <-chan struct{}) *Metered {
	m := &Metered{Stream: s, release: func() {}, done: done}
	if b == nil {
		return m
	}
	m.send.waited = func(d time.Duration) { b.waited("sent", d) }
	m.receive.waited = func(d time.Duration) { b.waited("received", d) }
	if b.rates.PeerSend > 0 || b.rates.PeerReceive > 0 {
		var p *peerLimiters
		p, m.release = b.peer(s.Conn().RemotePeer())
		m.send.add(p.send)
		m.receive.add(p.receive)
	}
	m.send.add(b.send)
	m.receive.add(b.receive)
	return m
}

// Read waits for its bound, so that the peer's messages wait at the peer.
func (s *Metered) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b[:s.receive.most(len(b))])
	s.waited += s.receive.wait(n, s.done)
	return n, err
}

// SetWriteDeadline bounds what the peer takes to accept bytes. What the bounds of the
// bandwidth take does not count.
func (s *Metered) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return s.Stream.SetWriteDeadline(t)
}

// Write waits for its bound.
func (s *Metered) Write(b []byte) (written int, err error) {
	if len(s.send.limiters) == 0 {
		return s.Stream.Write(b)
	}
	for part := range slices.Chunk(b, meteredBytes) {
		waited := s.send.wait(len(part), s.done)
		if waited > 0 && !s.deadline.IsZero() {
			if err := s.SetWriteDeadline(s.deadline.Add(waited)); err != nil {
				return written, err
			}
		}
		n, err := s.Stream.Write(part)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// Close closes the stream.
func (s *Metered) Close() error { s.release(); return s.Stream.Close() }

// Reset resets the stream.
func (s *Metered) Reset() error { s.release(); return s.Stream.Reset() }
