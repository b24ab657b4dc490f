package peer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// ownWrites has the node remember what it has lately had other hosts hold, key by key: a host that is current may
// be directory.Fresh behind what another one has acknowledged. A condition that was looked up at such a host would
// rest on what the node itself has replaced, and the next record over it would count the replaced one as seen: a
// record names its writers by their clocks. What the node puts without a condition names what is remembered: a
// record on a condition has an incarnation of its own, so that a host which lacks it would list it as a conflict.
type ownWrites struct {
	mu sync.Mutex // guards what follows
	of map[[sha256.Size]byte]*ownWrite
	// The keys in the order in which they were noted first, and again.
	first, last *ownWrite
	full        time.Duration // until then what is missing may have been given up for want of room
}

// ownWrite is the last write of a key: its version, and what it replaces.
type ownWrite struct {
	key        [sha256.Size]byte
	record     *dbadapter.Record
	until      time.Duration
	prev, next *ownWrite
}

const (
	// maxOwnWrites is how many keys are remembered, in some 5 MiB.
	maxOwnWrites = 1 << 14
	// ownWritesFor is for how long: twice as long as a host may be behind.
	ownWritesFor = 2 * directory.Fresh
)

// note remembers a record that hosts hold, or may.
func (w *ownWrites) note(r *dbadapter.Record, now time.Duration) {
	key := sha256.Sum256(r.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[[sha256.Size]byte]*ownWrite{}
	}
	one := w.of[key]
	switch {
	case one == nil:
		one = &ownWrite{key: key}
	case one.record.Version.Compare(r.Version) > 0:
		return // another call was later
	default:
		w.unlink(one)
	}
	one.record = &dbadapter.Record{Version: r.Version, Replaces: r.Replaces}
	one.until = now + ownWritesFor
	w.of[key] = one
	if one.prev = w.last; one.prev != nil {
		one.prev.next = one
	} else {
		w.first = one
	}
	w.last = one
	for w.first.until < now || len(w.of) > maxOwnWrites {
		w.full = max(w.full, w.first.until)
		delete(w.of, w.first.key)
		w.unlink(w.first)
	}
}

func (w *ownWrites) unlink(one *ownWrite) {
	if one.prev != nil {
		one.prev.next = one.next
	} else {
		w.first = one.next
	}
	if one.next != nil {
		one.next.prev = one.prev
	} else {
		w.last = one.prev
	}
	one.prev, one.next = nil, nil
}

// lately is the last write of a key, or nil. full: there may have been one that was given up.
func (w *ownWrites) lately(key []byte, now time.Duration) (r *dbadapter.Record, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.of[sha256.Sum256(key)]; one != nil && one.until >= now {
		return one.record, false
	}
	return nil, w.full >= now
}

// wroteLately is what this node has lately had other hosts hold under a key, and doubted whether a copy of
// the key, here or at a host that is current, may be behind that.
func (ns *Namespace) wroteLately(key []byte) (own *dbadapter.Record, doubted bool) {
	own, full := ns.written.lately(key, ns.node.elapsed())
	return own, own != nil || full
}

// lookUpRested looks up a key on which a write rests, until a deadline: where what was found may be behind what
// this node itself has written, at all hosts.
func (ns *Namespace) lookUpRested(ctx context.Context, over time.Duration, in placement.Shard, key []byte) (lookedUp, error) {
	own, doubted := ns.wroteLately(key)
	found, err := ns.lookUpUntil(ctx, over, in, key, doubted && own == nil)
	if err != nil || own == nil || follows(found.Record, own) {
		return found, err
	}
	found, err = ns.lookUpUntil(ctx, over, in, key, true)
	if err == nil && !follows(found.Record, own) && (!later(found.Record, own) || holdsStill(&found, own)) {
		err = fmt.Errorf("%w: this node has written the key since, and its hosts have not all answered, or not all have taken what is there now", ErrUnsure)
	}
	return found, err
}

func later(r, own *dbadapter.Record) bool {
	return r != nil && r.Version.Compare(own.Version) > 0
}

// follows reports whether a record is one of this node, or its writer had seen that.
func follows(r, own *dbadapter.Record) bool {
	return r != nil && (r.Version == own.Version || later(r, own) && r.Supersedes(own.Version))
}

// holdsStill reports whether a host has answered with a record over which another host holds a later one that has
// not seen it: it is to become a conflict first.
func holdsStill(found *lookedUp, own *dbadapter.Record) bool {
	for _, h := range found.Heard {
		if h.Answer != nil && h.Answer.Record != nil && h.Answer.Record.Version == own.Version {
			return true
		}
	}
	return false
}

// seeing is a draft that has seen what this node has lately had other hosts hold. One that rests on what the key
// holds is looked up first.
func (ns *Namespace) seeing(d node.Draft) (_ node.Draft, doubted bool) {
	own, doubted := ns.wroteLately(d.Record.Key)
	if own != nil {
		d.Seen = []*dbadapter.Record{own}
	}
	return d, doubted
}
