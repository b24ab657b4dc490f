package peer

import (
	"context"
	"sync"
)

// dialling gives the dials to one peer their turns. libp2p joins those who dial
// a peer at the same time, and keeps a dial that has failed for as long as one
// of them has not heard of it: who tries again meanwhile is told of the old
// failure.
type dialling struct {
	mu sync.Mutex
	to map[ID]chan struct{} // closed when the turn is over
}

// turn waits until nobody else dials the peer. The caller ends its turn.
func (d *dialling) turn(ctx context.Context, id ID) (end func(), err error) {
	for {
		d.mu.Lock()
		other, busy := d.to[id]
		if !busy {
			if d.to == nil {
				d.to = map[ID]chan struct{}{}
			}
			mine := make(chan struct{})
			d.to[id] = mine
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.to, id)
				close(mine)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
