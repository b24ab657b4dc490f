package peer

import (
	"errors"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// Bounds of which hosts are asked for their feeds at once, and when. A host that does not
// answer keeps no other one waiting.
const (
	// followEvery is how often each host is polled: twice within
	// directory.Fresh, and a little more.
	followEvery = 2 * time.Second
	// followTick is how often it is looked which of them are due.
	followTick = 500 * time.Millisecond
	// followHosts are asked at once, of those that have answered last time; one that has not
	// answered for followEvery counts no longer.
	followHosts = 16
	// followWaits are asked beside them to answer once they have news; where there are more hosts
	// the others are polled as by followEvery. Each takes a goroutine and the buffers of a stream, and
	// one that hangs keeps its place until followPatience is over: it takes none of those that answer.
	followWaits = 64
	// followSilent are asked at once of those that have not answered last time, or for
	// followEvery.
	followSilent = 16
	// followMost are asked at once in all, beside those that are to wait: as many as can hang, if
	// in each followEvery as many begin to as there are places.
	followMost = followHosts*int(followPatience/followEvery) + followSilent
	// followRest is the longest pause after a host that has not answered. It doubles from
	// followEvery on.
	followRest = 10 * time.Second
)

// followTurns say which hosts are asked now. Each has a time of its own.
type followTurns struct {
	over func(node.ID) // called behind ended, for tests

	mu sync.Mutex // guards what follows
	of map[node.ID]*followTurn
}

// followTurn is when one host is asked.
type followTurn struct {
	listed   bool // it is a host
	running  bool
	waits    bool          // the poll may wait at the host
	begun    time.Duration // the last time
	due      time.Duration
	failures int // in a row
}

// set tells which hosts there are. Another one is not asked any more.
func (t *followTurns) set(hosts []node.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := make(map[node.ID]*followTurn, len(hosts))
	for id, h := range t.of {
		if h.listed = false; h.running {
			of[id] = h // if it comes back, it is not asked twice at once
		}
	}
	for _, id := range hosts {
		if of[id] == nil {
			if of[id] = t.of[id]; of[id] == nil {
				of[id] = &followTurn{}
			}
		}
		of[id].listed = true
	}
	t.of = of
}

// begin is a host that is to be asked now, the one that is due longest; "": none is, or as many
// are being asked as may be. ended is to be called with its turn.
func (t *followTurns) begin(now time.Duration) (id node.ID, turn *followTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answering, silent, waits := 0, 0, 0
	for _, h := range t.of {
		switch {
		case !h.running:
		case h.waits:
			waits++
		case h.failures == 0 && now-h.begun < followEvery:
			answering++
		default:
			silent++
		}
	}
	if answering+silent >= followMost {
		return "", nil
	}
	for other, h := range t.of {
		room := answering < followHosts || waits < followWaits
		if h.failures > 0 {
			room = silent < followSilent
		}
		if room && h.listed && !h.running && h.due <= now && (turn == nil || h.due < turn.due) {
			id, turn = other, h
		}
	}
	if turn != nil {
		turn.running, turn.begun = true, now
		turn.waits = turn.failures == 0 && waits < followWaits
	}
	return id, turn
}

// followed is how a host was asked.
type followed uint8

const (
	followFailed   followed = iota
	followBusy              // it has said that it cannot answer now
	followAnswered          // at once
	followAgain             // as late as it was to, or with news, so that it can be asked again at once
)

// howFollowed says how a host was asked whose answers have ended with err.
func howFollowed(again bool, err error) followed {
	switch {
	case errors.Is(err, ErrBusy):
		return followBusy
	case err != nil:
		return followFailed
	case again:
		return followAgain
	}
	return followAnswered
}

// ended tells that a host was asked, and how that went.
func (t *followTurns) ended(id node.ID, turn *followTurn, how followed, now time.Duration) {
	if t.over != nil {
		defer t.over(id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	turn.running = false
	if !turn.listed {
		delete(t.of, id)
	}
	switch how {
	case followFailed:
		turn.due = now + min(followEvery<<turn.failures, followRest)
		turn.failures = min(turn.failures+1, 8)
		return
	case followBusy:
		turn.due = now + followTick // it is there: what it tells is not to become stale
	case followAgain:
		turn.due = now
	default:
		turn.due = turn.begun + followEvery
	}
	turn.failures = 0
}
