package cuckoo

import (
	"fmt"
	"slices"
)

func (t *Table) insert(hash, value uint64) error {
	t.work.begin()
	if value>>t.value != 0 {
		return fmt.Errorf("cuckoo: insert value %#x: %w: values have %d bits", value, ErrRange, t.value)
	}
	id := t.identify(hash)
	id.value = value
	if old, ok := t.find(id); ok && old == value {
		return nil
	} else if ok {
		return fmt.Errorf("cuckoo: insert: %w", ErrConflict)
	}
	if t.expand() {
		t.unstash()
	}
	switch {
	case t.put(id):
	case len(t.stash) < stashSize:
		t.stash = append(t.stash, id)
	case float64(t.count) < planned(t.hashes, t.slots)*float64(t.buckets)*float64(t.slots):
		return errCrowded(t.count)
	default:
		return fmt.Errorf("cuckoo: insert into a table of %d entries: %w", t.count, ErrFull)
	}
	t.count++
	return nil
}

// find returns the value of the entry that looks like an identity.
func (t *Table) find(id identity) (uint64, bool) {
	for choice := range t.hashes {
		if b, i := t.in(id, choice); i >= 0 {
			return t.slot(b, i) >> (t.choice + t.fingerprint), true
		}
	}
	for _, e := range t.stash {
		if e.looksLike(id) {
			return e.value, true
		}
	}
	return 0, false
}

// in returns the bucket of an identity by a hash function, and the slot where
// it is there, or −1.
func (t *Table) in(id identity, choice int) (bucket uint64, i int) {
	b, mark := t.bucketOf(id, choice), t.markOf(id, choice)
	chunk, word, shift := t.bit(b, 0)
	mask := uint64(1)<<((t.choice+t.fingerprint)&63) - 1
	for i := range t.slots {
		// What follows is slot(b, i), without finding its chunk each time.
		if (chunk[word]>>(shift&63)|chunk[word+1]<<1<<(63-shift&63))&mask == mark {
			return b, i
		}
		shift += uint(t.width)
		word, shift = word+int(shift>>6), shift&63
	}
	return b, -1
}

func (t *Table) remove(hash, value uint64) bool {
	t.work.begin()
	id := t.identify(hash)
	if old, ok := t.find(id); !ok || old != value {
		return false
	}
	t.take(id)
	t.count--
	t.unstash()
	return true
}

// take frees the slot of an identity that has one.
func (t *Table) take(id identity) {
	for choice := range t.hashes {
		if b, i := t.in(id, choice); i >= 0 {
			t.setSlot(b, i, 0)
			return
		}
	}
	t.stash = slices.DeleteFunc(t.stash, id.looksLike)
}

// expand splits buckets while the table is fuller than it should be, and reports
// whether it did.
func (t *Table) expand() (did bool) {
	for range t.splits {
		if t.count < t.grow || t.buckets >= t.most {
			return did
		}
		did = true
		parent, child := t.split()
		if child>>chunkBits == uint64(len(t.chunks)) {
			t.chunks = append(t.chunks, make([]uint64, t.chunkWords()))
		}
		for i := range t.slots {
			s := t.slot(parent, i)
			if s == 0 {
				continue
			}
			if id, choice := t.identityOf(parent, s); t.bucketOf(id, choice) == child {
				t.setSlot(child, i, s)
				t.setSlot(parent, i, 0)
				t.work.move()
			}
		}
		t.limit()
	}
	return did
}

// put finds a slot for an entry.
func (t *Table) put(id identity) bool {
	var roots [maxHashes]hop
	for choice := range t.hashes {
		roots[choice] = hop{t.bucketOf(id, choice), uint8(choice)}
	}
	root, slot, ok := t.search.place(t, roots[:t.hashes], t.reach(), &t.work)
	if ok {
		t.setSlot(root.bucket, slot, t.slotOf(id, int(root.choice)))
	}
	return ok
}

// move implements shelves.
func (t *Table) move(from uint64, slot int, to hop, free int) {
	t.setSlot(to.bucket, free, t.slot(from, slot)&^(1<<t.choice-1)|uint64(to.choice))
}

// unstash tries to find a slot for the oldest entry of the stash. It is
// for when there are new slots or free ones; else it would search in vain.
func (t *Table) unstash() {
	if len(t.stash) > 0 && t.put(t.stash[0]) {
		t.stash = append(t.stash[:0], t.stash[1:]...)
		t.work.move()
	}
}

// free implements shelves.
func (t *Table) free(b uint64) int {
	for i := range t.slots {
		if t.slot(b, i) == 0 {
			return i
		}
	}
	return -1
}

// others implements shelves.
func (t *Table) others(b uint64, slot int, hops *[maxHashes]hop) (n int) {
	id, choice := t.identityOf(b, t.slot(b, slot))
	for other := range t.hashes {
		if other == choice {
			continue
		}
		if to := t.bucketOf(id, other); to != b {
			hops[n] = hop{to, uint8(other)}
			n++
		}
	}
	return n
}
