package locator

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"
)

// tail is an exact map that one goroutine writes while any number read, without
// a lock: open addressing with linear probing, where a key once written stays
// in its slot. So a reader needs no more than each word whole. The code is
// written before the key: a reader that sees the key sees a code.
type tail struct {
	keys  []atomic.Uint64
	codes []atomic.Uint32
	zero  atomic.Uint32 // the code of key 0, which marks a free slot
	n     int           // keys, for the writer
	most  int           // keys that it takes
}

// A code in a tail is 1 + the code of an entry, and below says that a layer
// below the exact map answers the key, rightly or not.
const (
	below = 1 << 31
	// leastTail takes 9 KiB. mostTail, 4.5 MiB, bounds what a saved field can make
	// of the counts in it.
	leastTail, mostTail = 512, 1 << 18
	// tailPart: a tail takes this part of what it is merged into, at which the
	// merge costs an insertion about 16 entries copied, some 20 ns each.
	tailPart = 16
	// tailSlots of 12 bytes for two keys: at load 2/3 a miss reads five slots
	// (Knuth, TAOCP 3, section 6.4), which are on one or two lines.
	tailSlots = 3
)

func newTail(over int) *tail {
	t := &tail{most: min(max(leastTail, over/tailPart), mostTail)}
	slots := t.most * tailSlots / 2
	t.keys, t.codes = make([]atomic.Uint64, slots), make([]atomic.Uint32, slots)
	return t
}

// slot is where the key is, or the free slot where it would be.
func (t *tail) slot(key uint64) (i int, there bool) {
	at, _ := bits.Mul64(key, uint64(len(t.keys)))
	for i = int(at); ; {
		switch t.keys[i].Load() {
		case key:
			return i, true
		case 0:
			return i, false
		}
		if i++; i == len(t.keys) {
			i = 0
		}
	}
}

// get returns the code of a key, and below with it; 0 if it is not there.
func (t *tail) get(key uint64) uint32 {
	if key == 0 {
		return t.zero.Load()
	}
	if i, ok := t.slot(key); ok {
		return t.codes[i].Load()
	}
	return 0
}

// put gives a key a code. The caller sees to it that there is room.
func (t *tail) put(key uint64, code uint32) {
	if key == 0 {
		if t.zero.Swap(code) == 0 {
			t.n++
		}
		return
	}
	i, there := t.slot(key)
	t.codes[i].Store(code)
	if !there {
		t.keys[i].Store(key)
		t.n++
	}
}

func (t *tail) full() bool { return t.n >= t.most }

func (t *tail) bytes() int { return 12 * len(t.keys) }

// sorted returns the entries in ascending order of keys; their codes are the
// tail's.
func (t *tail) sorted() []entry {
	entries := make([]entry, 0, t.n)
	if code := t.zero.Load(); code != 0 {
		entries = append(entries, entry{0, code})
	}
	for i := range t.keys {
		if key := t.keys[i].Load(); key != 0 {
			entries = append(entries, entry{key, t.codes[i].Load()})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return entries
}
