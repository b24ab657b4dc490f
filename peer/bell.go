package peer

import "sync"

// bell tells those that wait that a commit has come. A commit at which no other waits
// costs a lock.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed by the next commit; nil while no other waits
}

// next is closed by the next commit.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// ring is called after each commit.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
