package locator

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Set says that a key is in a shard now: a new key, or one that has moved. What
// the Locator answers already costs nothing, so a feed may be fed again.
func (l *Locator) Set(hash uint64, s Shard) error {
	return l.SetBatch([]uint64{hash}, []Shard{s})
}

// SetBatch is Set of many keys, under one lock. Look-ups do not wait for it.
func (l *Locator) SetBatch(hashes []uint64, shards []Shard) error {
	if len(hashes) != len(shards) {
		return fmt.Errorf("%w: %d keys with %d shards", ErrConfig, len(hashes), len(shards))
	}
	for i, s := range shards {
		if int(s) >= l.config.Shards {
			return fmt.Errorf("%w: key %d is in shard %d of %d", ErrShard, i, s, l.config.Shards)
		}
	}
	l.change(hashes, func(i int) uint32 { return uint32(shards[i]) })
	return nil
}

// Remove says that a key is in no shard any more.
func (l *Locator) Remove(hash uint64) { l.RemoveBatch([]uint64{hash}) }

// RemoveBatch is Remove of many keys.
func (l *Locator) RemoveBatch(hashes []uint64) {
	l.change(hashes, func(int) uint32 { return l.config.gone() })
}

func (l *Locator) change(hashes []uint64, code func(i int) uint32) {
	l.writing.Lock()
	defer l.writing.Unlock()
	var values [batch]uint64
	var found [batch]bool
	base := l.view.Load().base // Rebuild changes it under writing
	for from := 0; from < len(hashes); from += batch {
		part := hashes[from:min(from+batch, len(hashes))]
		if len(part) == 1 {
			values[0], found[0] = base.Lookup(keyed.Number(part[0]))
		} else {
			base.LookupBatch(keyed.Numbers(part), values[:], found[:])
		}
		for i, hash := range part {
			s, answer := Shard(values[i]), Likely
			if !found[i] {
				s, answer = l.view.Load().delta(hash)
			}
			l.changeOne(l.key(hash), code(from+i), s, answer)
		}
	}
}

// changeOne gives a key a code, of which the layers below the exact map answer
// as told.
func (l *Locator) changeOne(key uint64, code uint32, s Shard, lower Answer) {
	v := l.view.Load()
	known := uint32(0)
	if lower != Nowhere || l.rebuilding {
		// While a base is built, whether it will have the key is not known.
		known = below
	}
	if old := v.tail.get(key); old != 0 {
		// What is below does not change until the tail is folded.
		v.tail.put(key, old&below|(code+1))
		return
	}
	if !l.rebuilding {
		old, ok := v.run.get(key)
		switch {
		case ok && old == code:
			return
		case ok:
		case lower == Likely && code == uint32(s), lower == Nowhere && code == l.config.gone():
			return
		}
	}
	v.tail.put(key, known|(code+1))
	if v.tail.full() {
		l.fold()
	}
}
