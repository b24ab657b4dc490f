package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// turn decides from which peer a namespace is given many records: from one at a time,
// so that a node that was away is sent each value once. The others are told to wait,
// and then find that little is left.
type turn struct {
	mu      sync.Mutex // guards what follows
	holder  ID
	running int       // its conversations that are given many records
	rest    time.Time // until when the holder may go on, after the last of these
}

// free reports whether a peer may give many records now.
func (t *turn) free(remote ID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.freeLocked(remote, now)
}

func (t *turn) freeLocked(remote ID, now time.Time) bool {
	// A clock that was set back must not prolong the rest.
	resting := now.Before(t.rest) && t.rest.Sub(now) <= turnRest
	return t.holder == remote || t.running == 0 && !resting
}

// take takes the turn for a conversation with a peer, until done is called: once.
// It fails with ErrTurn while another peer has it.
func (t *turn) take(remote ID, clock func() time.Time) (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.freeLocked(remote, clock()) {
		return nil, reconcile.ErrTurn
	}
	t.holder = remote
	t.running++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running--; t.running == 0 {
			t.rest = clock().Add(turnRest)
		}
	}, nil
}
