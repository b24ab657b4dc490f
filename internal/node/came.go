package node

import (
	"bytes"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// A record can come to a host when the directory has placed its key in another shard already: it comes by a
// sync, after the hosts of the directory have told so and the shard was looked through; or its entry has stood
// for less time than lies between two polls, so that they tell nothing of it. It has to recede before what it
// has lost against is deleted and collected: from then on it looks like one whose entry was lost, and is written
// anew. So what comes to a shard is held to the locator a little later, and the shard is looked through
// (meetings.go) if that places a key elsewhere.

const (
	// cameFor is how much later that is. The locator then knows what the directory's hosts had when the record
	// came, or knows that it does not.
	cameFor = directory.Fresh
	// cameMost keys are remembered at once, of cameBytes in all. A shard is looked through if there is no
	// room for one of its keys.
	cameMost  = 1 << 16
	cameBytes = 8 << 20
)

// came are the keys of records that have come to shards lately, in the order in which they came.
type came struct {
	mu    sync.Mutex // guards what follows
	keys  []cameKey
	bytes int
}

type cameKey struct {
	shard placement.Shard
	key   []byte
	at    time.Duration
}

// note notes a key, if there are no more than most with it, and reports whether it has.
func (c *came) note(shard placement.Shard, key []byte, now time.Duration, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= most || c.bytes+len(key) > cameBytes {
		return false
	}
	c.keys = append(c.keys, cameKey{shard, key, now})
	c.bytes += len(key)
	return true
}

// take takes the keys that have come at least cameFor before.
func (c *came) take(now time.Duration) (keys []cameKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.keys) && now-c.keys[n].at >= cameFor {
		c.bytes -= len(c.keys[n].key)
		n++
	}
	if keys = c.keys[:n:n]; n == len(c.keys) {
		c.keys = nil
	} else {
		c.keys = c.keys[n:]
	}
	return keys
}

// cameTo notes what a commit has put into a shard. The store holds locks.
func (w *ByWriter) cameTo(shard placement.Shard, changes []dbadapter.Change) {
	now := w.do.Steady()
	for i := range changes {
		if changes[i].New == 0 { // that of no record
			continue
		}
		for _, key := range changes[i].Keys {
			if !w.came.note(shard, bytes.Clone(key), now, cameMost) {
				w.meetings.met(shard)
				return
			}
		}
	}
}

// placeCame has the shards looked through of which records have come that the locator places elsewhere. Where it
// cannot tell of a key, or places it here by this node's own write alone, it is asked again; if too many wait for that, the shard is
// looked through as one of which something was left open.
func (w *ByWriter) placeCame(held map[placement.Shard]*Set) {
	now := w.do.Steady()
	for _, c := range w.came.take(now) {
		set := held[c.shard]
		if set == nil {
			continue
		}
		switch elsewhere, known := (&guesses{w: w, held: c.shard}).elsewhere(c.key, false); {
		case !known:
			if !w.came.note(c.shard, c.key, now, cameMost/2) { // what comes has the rest
				w.meetings.leaveOpen(c.shard, now)
			}
		case elsewhere:
			if r, err := set.Held(c.key); err != nil || r != nil && set.Present(r) { // of a tombstone nothing is to be decided
				w.meetings.met(c.shard)
			}
		}
	}
}
