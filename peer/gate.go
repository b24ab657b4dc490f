package peer

import "sync"

// gate counts the calls inside, and refuses more once it is shut. (A WaitGroup
// alone will not do: it must not grow from zero while a goroutine waits.)
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when the gate is shut and the last call has left
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the gate is open; if so, leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close shuts the gate, and reports whether this call did. The channel empty
// tells when all have left.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.shut = true
	if g.inside == 0 {
		close(g.empty)
	}
	return true
}
