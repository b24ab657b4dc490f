package peer

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// keyTurns has the calls of a node that write to one key of a shard, on a condition, go one after the other. Hosts
// refuse the one that has not seen the other, whichever comes first at each of them, so that both would
// end as unconfirmed where two hosts are to hold them. Other writes need no turn.
type keyTurns struct {
	mu sync.Mutex // guards what follows
	of map[string]*keyTurn
}

// keyTurn is of one key, as long as a call has it or waits for it.
type keyTurn struct {
	taken chan struct{} // of capacity 1: full while a call has the turn
	users int
}

// take waits for the turn of a key. ErrBusy: others have had it for as long as a write goes on.
func (t *keyTurns) take(ctx context.Context, key []byte) (leave func(), err error) {
	of := string(key)
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]*keyTurn{}
	}
	one := t.of[of]
	if one == nil {
		one = &keyTurn{taken: make(chan struct{}, 1)}
		t.of[of] = one
	}
	one.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.of, of)
		}
	}
	patience := time.NewTimer(routePatience)
	defer patience.Stop()
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; forget() }, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = fmt.Errorf("%w: other writes of the key are under way at this node", ErrBusy)
	}
	forget()
	return nil, err
}
