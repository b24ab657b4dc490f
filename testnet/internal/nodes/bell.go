package nodes

import "sync"

// bell tells any number of waiting goroutines that something has changed. The
// zero value is ready.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait gives the channel that the next ring closes. Take it, then look, then
// wait: no change is missed.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
