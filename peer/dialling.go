package peer

import (
	"context"
	"sync"
)

// dialling serialises the dials to one peer. libp2p lets all concurrent dials to a peer
// share one attempt, and keeps a failed attempt until each of them has returned. A dial
// that begins meanwhile gets the old failure.
type dialling struct {
	mu sync.Mutex
	to map[ID]chan struct{} // closed when the dial has ended
}

// turn waits until no other caller dials the peer. The caller must call end.
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
