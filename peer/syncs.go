package peer

import (
	"context"
	"sync"
	"sync/atomic"
)

// syncPlaces holds the syncs that this node began to their number, in all and with one
// peer: one more waits.
type syncPlaces struct {
	own     chan struct{}
	perPeer int
	running atomic.Int64 // syncs of both sides

	mu    sync.Mutex // guards what follows
	peers map[ID]*peerPlaces
}

// peerPlaces are those of one peer.
type peerPlaces struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

func newSyncPlaces(n, perPeer int) *syncPlaces {
	return &syncPlaces{own: make(chan struct{}, n), perPeer: perPeer, peers: map[ID]*peerPlaces{}}
}

// take waits for a place for a sync of this node's own with a peer.
func (p *syncPlaces) take(ctx context.Context, id ID) (release func(), err error) {
	of, leave := p.with(id)
	if err := enter(ctx, of.places); err != nil {
		leave()
		return nil, err
	}
	if err := enter(ctx, p.own); err != nil {
		<-of.places
		leave()
		return nil, err
	}
	return func() {
		<-p.own
		<-of.places
		leave()
	}, nil
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// with are the places of a peer, until leave is called.
func (p *syncPlaces) with(id ID) (of *peerPlaces, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of = p.peers[id]
	if of == nil {
		of = &peerPlaces{places: make(chan struct{}, p.perPeer)}
		p.peers[id] = of
	}
	of.users++
	return of, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(p.peers, id)
		}
	}
}
