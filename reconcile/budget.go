package reconcile

import (
	"fmt"
	"sync"
)

// Budget lends memory to sessions, and may be shared by many.
type Budget struct {
	mu   sync.Mutex // guards free
	free int64
}

// NewBudget is a Budget of that many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{free: bytes} }

// reserve takes n bytes, or fails at once with ErrBusy: a session that holds memory never
// waits for more.
func (b *Budget) reserve(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		return fmt.Errorf("%w: a session asks for %d bytes of memory, and %d are free", ErrBusy, n, b.free)
	}
	b.free -= n
	return nil
}

// release gives n bytes back.
func (b *Budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
}

// Reserve takes n bytes from the session's budget until the session ends. It is for
// long work that is done for the session within Next: for the scan of a prefix.
// Outside Next it does nothing.
func (s *Session) Reserve(n int64) error {
	if !s.running {
		return nil
	}
	return s.link.reserve(n)
}

// reserve takes memory for the rest of the session.
func (l *link) reserve(n int64) error {
	if l.opts.Budget == nil {
		return nil
	}
	if err := l.opts.Budget.reserve(n); err != nil {
		return err
	}
	l.reserved += n
	return nil
}

// release gives back all that the session has reserved.
func (l *link) release() {
	if l.reserved > 0 {
		l.opts.Budget.release(l.reserved)
		l.reserved = 0
	}
}
