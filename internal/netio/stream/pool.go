package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/reconcile/wire"
)

const (
	// poolIdle is for how long a pool keeps a stream that it does not use.
	poolIdle = 30 * time.Second
	// poolKept streams to one peer are kept so long. Those beyond, up to the pool's bound for a
	// peer, are kept for poolSpare: while many questions arrive, few streams need to be opened.
	// Of all peers poolKeptInAll are kept. Each may reserve 256 KiB of libp2p's memory on both
	// sides.
	poolKept      = 2
	poolSpare     = time.Second
	poolKeptInAll = 64
)

// Pool asks peers over streams that it keeps open between two questions.
type Pool struct {
	life    context.Context // none is kept once it is over
	perPeer int
	open    func(ctx context.Context, id peer.ID) (*Carrier, error)

	mu   sync.Mutex // guards what follows
	idle map[peer.ID][]*pooled
	kept int // of idle
}

// pooled is a stream that is open to a peer.
type pooled struct {
	talk *Carrier
	over *time.Timer // closes it while it is idle
}

// NewPool makes a pool that opens streams by open, and keeps at most perPeer to a peer until
// life is over.
func NewPool(life context.Context, perPeer int, open func(ctx context.Context, id peer.ID) (*Carrier, error)) *Pool {
	return &Pool{life: life, perPeer: perPeer, open: open, idle: map[peer.ID][]*pooled{}}
}

// Exchange sends a question to a peer and receives the answer, which may be a refusal. sent
// says that the question may have reached the peer.
func (p *Pool) Exchange(ctx context.Context, id peer.ID, frame []byte) (m wire.Message, sent bool, err error) {
	if s := p.take(id); s != nil {
		if m, err = p.exchange(ctx, id, s, frame); err == nil || ctx.Err() != nil {
			return m, true, err
		}
		sent = true // the peer may have closed the stream meanwhile, or has gone; both sides may take the question twice
	}
	talk, err := p.open(ctx, id)
	if err != nil {
		return nil, sent, err
	}
	m, err = p.exchange(ctx, id, &pooled{talk: talk}, frame)
	return m, true, err
}

// exchange sends a question over a stream, and keeps the stream once it has the answer.
func (p *Pool) exchange(ctx context.Context, id peer.ID, s *pooled, frame []byte) (wire.Message, error) {
	m, err := s.talk.Exchange(ctx, frame)
	if err != nil {
		return nil, err
	}
	if _, answered := m.(*wire.Reply); !answered || s.talk.Over() || !p.keep(id, s) {
		s.talk.Cut()
	}
	return m, nil
}

// take takes an idle stream to a peer, the one that was used last; nil: there is none.
func (p *Pool) take(id peer.ID) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	for all := p.idle[id]; len(all) > 0; {
		s := all[len(all)-1]
		all = all[:len(all)-1]
		p.set(id, all)
		if s.over.Stop() { // else it is being closed
			return s
		}
	}
	return nil
}

// keep keeps a stream that is idle, and reports whether there is room.
func (p *Pool) keep(id peer.ID, s *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.idle[id])
	if p.life.Err() != nil || before >= p.perPeer || p.kept >= poolKeptInAll {
		return false
	}
	idle := poolIdle
	if before >= poolKept {
		if p.kept >= poolKeptInAll/2 {
			return false // the other half is for peers with fewer
		}
		idle = poolSpare
	}
	s.over = time.AfterFunc(idle, func() {
		p.mu.Lock()
		p.set(id, slices.DeleteFunc(slices.Clone(p.idle[id]), func(o *pooled) bool { return o == s }))
		p.mu.Unlock()
		_ = s.talk.Close() // the peer may be gone
	})
	p.set(id, append(slices.Clone(p.idle[id]), s))
	return true
}

// set exchanges the idle streams of a peer. mu is held.
func (p *Pool) set(id peer.ID, all []*pooled) {
	p.kept += len(all) - len(p.idle[id])
	if len(all) == 0 {
		delete(p.idle, id)
		return
	}
	p.idle[id] = all
}

// CloseIdle closes the streams that are idle.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.kept = map[peer.ID][]*pooled{}, 0
	p.mu.Unlock()
	for _, all := range idle {
		for _, s := range all {
			if s.over.Stop() {
				s.talk.Cut()
			}
		}
	}
}
