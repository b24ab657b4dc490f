package node

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/route"
)

// ownWrites has the node remember what it has other hosts hold, key by key, until each host of the key's shard was heard
// to hold it: a host that is current may be directory.Fresh behind what another one has acknowledged.
// A condition that was looked up at such a host would rest on what the node itself has replaced, and the next record
// over it would count the replaced one as seen: a record names its writers by their clocks. For the same reason the node's
// writes of a key have seen one another: of two at one moment the one that is noted second is made anew. A record on
// a condition has an incarnation of its own, so that a host which lacks it would list it as a conflict.
//
// After ownWritesFor no current host can be behind the write. It is remembered on, while there is room, for conditions
// that would rest on a later record which has not seen it: a host that was cut off may hold it still.
type ownWrites struct {
	mu sync.Mutex // guards what follows
	of map[[sha256.Size]byte]*ownWrite
	// The keys in the order in which they were noted first, and again.
	first, last *ownWrite
	full        time.Duration // until then what is missing may have been given up for want of room,
	forgotten   time.Duration // and until then with the process before this one
}

// ownWrite is the last write of a key: its version, and what it replaces.
type ownWrite struct {
	key        [sha256.Size]byte
	record     *dbadapter.Record
	before     *dbadapter.Record // what was remembered before it
	missing    []ID              // the hosts that were not heard to hold it
	until      time.Duration     // a current host may be behind it
	prev, next *ownWrite
}

const (
	// MaxOwnWrites is how many keys are remembered, in some 5 MiB.
	MaxOwnWrites = 1 << 14
	// ownWritesFor is for how long reads heed them: twice as long as a host may be behind.
	ownWritesFor = 2 * directory.Fresh
)

// note remembers a record that is to be handed to hosts. saw is what was remembered of the key when the record was made.
// Where that is another write by now, nothing is noted and other is that one: the record is to be made anew, as one that
// has seen it.
func (w *ownWrites) note(r, saw *dbadapter.Record, hosts []ID, now time.Duration) (other *dbadapter.Record) {
	key := sha256.Sum256(r.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[[sha256.Size]byte]*ownWrite{}
	}
	one := w.of[key]
	if one != nil {
		if one.record.Version != r.Version && (saw == nil || saw.Version != one.record.Version) {
			return one.record
		}
		w.unlink(one)
	}
	w.of[key] = w.link(&ownWrite{
		key: key, record: &dbadapter.Record{Version: r.Version, Replaces: r.Replaces}, before: saw,
		missing: slices.Clone(hosts), until: now + ownWritesFor,
	})
	for len(w.of) > MaxOwnWrites {
		w.full = max(w.full, w.first.until)
		w.forget(w.first)
	}
	return nil
}

// find is what is remembered of a key, or nil. mu is held.
func (w *ownWrites) find(key []byte) *ownWrite {
	if len(w.of) == 0 { // each read comes here
		return nil
	}
	return w.of[sha256.Sum256(key)]
}

// is is what is remembered of a record, or nil if it is not the latest of its key. mu is held.
func (w *ownWrites) is(r *dbadapter.Record) *ownWrite {
	if one := w.find(r.Key); one != nil && one.record.Version == r.Version {
		return one
	}
	return nil
}

// heldBy notes that a host holds a record.
func (w *ownWrites) heldBy(r *dbadapter.Record, host ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.is(r)
	if one == nil {
		return
	}
	if one.missing = slices.DeleteFunc(one.missing, func(id ID) bool { return id == host }); len(one.missing) == 0 {
		w.forget(one)
	}
}

// heldHere forgets a record.
func (w *ownWrites) heldHere(r *dbadapter.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.is(r); one != nil {
		w.forget(one)
	}
}

// withdraw forgets a record that no host has taken: what was remembered before it stands.
func (w *ownWrites) withdraw(r *dbadapter.Record, hosts []ID, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.is(r)
	if one == nil {
		return
	}
	if one.before == nil {
		w.forget(one)
		return
	}
	w.unlink(one)
	one.record, one.before, one.missing, one.until = one.before, nil, slices.Clone(hosts), now+ownWritesFor
	w.link(one)
}

// link makes a write the last one.
func (w *ownWrites) link(one *ownWrite) *ownWrite {
	if one.prev = w.last; one.prev != nil {
		one.prev.next = one
	} else {
		w.first = one
	}
	w.last = one
	return one
}

func (w *ownWrites) forget(one *ownWrite) {
	delete(w.of, one.key)
	w.unlink(one)
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

// Recalled is what a node remembers of its own writes of a key.
type Recalled struct {
	// Own is the latest that not every host of the key's shard was heard to hold: its version, and what it
	// replaces; nil if the node remembers no such write.
	Own *dbadapter.Record
	// late: no current host is behind it any more. here: this node holds it itself.
	late, here bool
	// awaited is how many writes of the key callers of this node wait for, and mine how many of them are the caller's own: of
	// each it may be that no host holds it yet, and that its caller is told that one does.
	awaited, mine int
	// full, forgotten: there may be one that the node has given up for want of room, or that an earlier process
	// has written.
	full, forgotten bool
}

// recall is what is remembered of a key.
func (w *ownWrites) recall(key []byte, now time.Duration) Recalled {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := Recalled{full: w.full >= now, forgotten: w.forgotten >= now}
	switch one := w.find(key); {
	case one == nil:
	case one.until >= now:
		return Recalled{Own: one.record}
	default:
		r.Own, r.late = one.record, true
	}
	return r
}

// latest is the last write of a key that is remembered, or nil.
func (w *ownWrites) latest(key []byte) *dbadapter.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.find(key); one != nil {
		return one.record
	}
	return nil
}

// Recall is what this node remembers of its own writes of a key. now is by a clock that never runs fast, the one
// that writes are given.
func (ns *Namespace) Recall(key []byte, now time.Duration) Recalled {
	r := ns.writes.recall(key, now)
	r.awaited = ns.awaited.count(key)
	return r
}

// recall is Recall for a write on what the key holds. What this node holds as a host and has written itself counts as remembered:
// other hosts may not have heard of it.
func (r *Remote) recall(key []byte, now time.Duration) Recalled {
	one := r.ns.Recall(key, now)
	set := r.Here()
	if set == nil {
		return one
	}
	switch held, err := set.Held(key); {
	case err != nil || held == nil || held.Version.Writer != r.ns.self:
	case one.Own == nil:
		one.Own, one.late, one.here = held, true, true
	default:
		one.here = held.Version == one.Own.Version
	}
	return one
}

// Note remembers a record that is to be handed to the hosts of its shard. saw is Recalled.Own when the record was
// made; where the node has written the key since, nothing is noted, and the result is that other write.
func (ns *Namespace) Note(remote *Remote, record, saw *dbadapter.Record, now time.Duration) (other *dbadapter.Record) {
	return ns.writes.note(record, saw, remote.hosts, now)
}

// Restarted tells that the namespace was opened before: an earlier process may have written what
// is remembered no more.
func (ns *Namespace) Restarted(now time.Duration) { ns.writes.forgotten = now + ownWritesFor }

// Withdraw forgets a record of this node that no host has taken.
func (ns *Namespace) Withdraw(remote *Remote, record *dbadapter.Record, now time.Duration) {
	ns.writes.withdraw(record, remote.hosts, now)
}

// HeldBy notes that a host holds a record of this node.
func (ns *Namespace) HeldBy(record *dbadapter.Record, host ID) { ns.writes.heldBy(record, host) }

// Reads reports whether a read may be behind a write of this node. It need not heed an earlier process.
func (r Recalled) Reads() bool { return r.Own != nil && !r.late || r.full }

// Rests reports whether a look-up on which a write rests may be behind a write of this node.
func (r Recalled) Rests() bool { return r.Own != nil || r.full || r.forgotten }

// All reports whether such a look-up asks all hosts from the beginning: there may be a write of this node, and it is not
// known which.
func (r Recalled) All() bool { return r.full || r.forgotten }

// Doubts reports whether a look-up on which a condition rests, of all hosts or not, may be behind a write of this node, or would have
// a write follow a record that has not seen it while a host may hold it, now or in a moment: what is written over both would count
// it as seen. It is to become a conflict first.
func (r Recalled) Doubts(found *LookedUp, all bool) bool {
	switch {
	case follows(found.Record, r.Own):
	case r.awaited > r.mine: // its hosts may hear of it later, however late, also where it is remembered no more
		return true
	case r.Own != nil && laterThan(found.Record, r.Own):
		return r.here || !each(found, all) || holdsStill(found, r.Own)
	}
	return r.Misses(found, all)
}

// Misses reports whether a look-up on which a write rests may be behind a write of this node.
func (r Recalled) Misses(found *LookedUp, all bool) bool {
	return (r.Reads() || r.forgotten) && !r.Tells(found, all)
}

// LookUp is a look-up on which a write rests: at all hosts, if it may be behind a write of this node otherwise.
func (r Recalled) LookUp(lookUp func(all bool) (LookedUp, error)) (found LookedUp, err error) {
	all := r.All()
	if found, err = lookUp(all); err == nil && !all && r.Doubts(&found, false) {
		all = true
		found, err = lookUp(true)
	}
	if err == nil && r.Doubts(&found, all) {
		found.Behind()
	}
	return found, err
}

// Tells reports whether a look-up tells of this node's own write. It does if it has found that write, or a later record
// that has seen it. It does, too, if the later record has not seen it and no host that has answered holds the own
// write: else that is to become a conflict first. Where the node does not know which write it was, the look-up tells of it if all
// hosts were asked and each has answered.
func (r Recalled) Tells(found *LookedUp, all bool) bool {
	if r.Own == nil || r.late {
		return each(found, all)
	}
	return follows(found.Record, r.Own) || laterThan(found.Record, r.Own) && !holdsStill(found, r.Own)
}

// each reports whether all hosts were asked, and each has answered.
func each(found *LookedUp, all bool) bool {
	return all && !slices.ContainsFunc(found.Heard, func(h route.Heard) bool { return h.Answer == nil })
}

// Behind has what was found be unsure: it does not tell of this node's own write.
func (f *LookedUp) Behind() {
	f.doubt("this node has written the key since, or may have, and not all of its hosts have answered, or taken what is there now")
}

func laterThan(r, own *dbadapter.Record) bool {
	return r != nil && r.Version.Compare(own.Version) > 0
}

// follows reports whether a record is one of this node, or its writer had seen that.
func follows(r, own *dbadapter.Record) bool {
	return r != nil && own != nil && (r.Version == own.Version || laterThan(r, own) && r.Supersedes(own.Version))
}

func holdsStill(found *LookedUp, own *dbadapter.Record) bool {
	return slices.ContainsFunc(found.Heard, func(h route.Heard) bool {
		return h.Answer != nil && h.Answer.Record != nil && h.Answer.Record.Version == own.Version
	})
}
