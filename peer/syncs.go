package peer

import (
	"context"
	"sync/atomic"
)

// syncPlaces holds the syncs that this node began to their number: one more waits.
type syncPlaces struct {
	own     chan struct{}
	running atomic.Int64 // syncs of both sides
}

func newSyncPlaces(n int) *syncPlaces { return &syncPlaces{own: make(chan struct{}, n)} }

// take waits for a place for a sync of this node's own.
func (p *syncPlaces) take(ctx context.Context) (release func(), err error) {
	select {
	case p.own <- struct{}{}:
		return func() { <-p.own }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
