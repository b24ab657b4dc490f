package stream

import (
	"context"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Places holds what a node does with peers to a number, in all and with one peer: one more
// waits.
type Places struct {
	all     chan struct{}
	perPeer int

	mu    sync.Mutex // guards what follows
	peers map[peer.ID]*peerPlaces
}

// peerPlaces are those of one peer.
type peerPlaces struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

// NewPlaces makes n places, of which perPeer are for one peer.
func NewPlaces(n, perPeer int) *Places {
	return &Places{all: make(chan struct{}, n), perPeer: perPeer, peers: map[peer.ID]*peerPlaces{}}
}

// Take waits for a place with a peer, until release. If the context ends first, the error is
// its cause.
func (p *Places) Take(ctx context.Context, id peer.ID) (release func(), err error) {
	of, leave := p.with(id)
	if err := enter(ctx, of.places); err != nil {
		leave()
		return nil, err
	}
	if err := enter(ctx, p.all); err != nil {
		<-of.places
		leave()
		return nil, err
	}
	return func() {
		<-p.all
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
func (p *Places) with(id peer.ID) (of *peerPlaces, leave func()) {
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
