package bloom

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/syncd-io/syncd/bfield/internal/workers"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// Filter is a set of keys that errs towards yes. Many goroutines may look keys up at
// once; an insertion or a merge wants it for itself alone.
type Filter struct {
	kind   Kind
	hashes int
	seed   uint64
	size   int // words, 1 or more
	keys   int
	words  []uint64
}

// New returns a filter without keys.
func New(c Config) (*Filter, error) {
	f, err := c.plan()
	if err != nil {
		return nil, err
	}
	f.words = make([]uint64, f.size)
	return f, nil
}

// BuildFilter builds a Filter of the keys.
func BuildFilter(c Config, keys keyed.List) (*Filter, error) {
	n := keys.Len()
	if c.Keys == 0 {
		c.Keys = n
	}
	f, err := New(c)
	if err != nil {
		return nil, err
	}
	most, err := workers.Of(c.Workers)
	if err != nil {
		return nil, fmt.Errorf("bloom: %w", err)
	}
	f.keys = n
	parts := min(most, n/minShare)
	if parts <= 1 {
		for i := range n {
			f.set(keys.At(i).Hash(f.seed))
		}
		return f, nil
	}
	workers.Each(parts, parts, func(part int) {
		for i := part * n / parts; i < (part+1)*n/parts; i++ {
			f.setShared(keys.At(i).Hash(f.seed))
		}
	})
	return f, nil
}

// minShare is how many keys are worth a goroutine.
const minShare = 4096

// Insert inserts a key. A key that is inserted twice counts twice in Stats and changes
// nothing else.
func (f *Filter) Insert(key keyed.Key) {
	f.keys++
	f.set(key.Hash(f.seed))
}

func (f *Filter) set(h uint64) {
	if f.kind == Blocked {
		setBlock(f.block(h), h, f.hashes)
		return
	}
	p := placesOf(h)
	for range f.hashes {
		at := f.place(&p)
		f.words[at>>6] |= 1 << (at & 63)
	}
}

// setShared is set while other goroutines set bits too.
func (f *Filter) setShared(h uint64) {
	if f.kind == Blocked {
		var bits [blockWords]uint64
		setBlock(&bits, h, f.hashes)
		b := f.block(h)
		for i, w := range bits {
			if w != 0 {
				atomic.OrUint64(&b[i], w)
			}
		}
		return
	}
	p := placesOf(h)
	for range f.hashes {
		at := f.place(&p)
		atomic.OrUint64(&f.words[at>>6], 1<<(at&63))
	}
}

// Lookup says whether a key is in the set, or looks as if it were.
func (f *Filter) Lookup(key keyed.Key) bool {
	h := key.Hash(f.seed)
	if f.kind == Blocked {
		return inBlock(f.block(h), h, f.hashes)
	}
	p := placesOf(h)
	for range f.hashes {
		if at := f.place(&p); f.words[at>>6]>>(at&63)&1 == 0 {
			return false
		}
	}
	return true
}

// ErrDifferent is wrapped by the error of a Merge of filters that cannot be merged.
var ErrDifferent = errors.New("the filters differ in kind, size, hashes or seed")

// Merge makes f the filter of its keys and of other's. Both must be of one Config.
func (f *Filter) Merge(other *Filter) error {
	if f.kind != other.kind || f.hashes != other.hashes || f.seed != other.seed || f.size != other.size {
		return fmt.Errorf("bloom: %w: %v, %d words, %d hashes, seed %d; and %v, %d words, %d hashes, seed %d", ErrDifferent,
			f.kind, f.size, f.hashes, f.seed, other.kind, other.size, other.hashes, other.seed)
	}
	for i, w := range other.words {
		f.words[i] |= w
	}
	f.keys += other.keys
	return nil
}

// Stats tells of a filter.
type Stats struct {
	Keys   int // insertions: a key that was inserted twice counts twice
	Bits   int // of everything that look-ups read
	Hashes int // bits that a key sets

	// FalsePositive is the probability that a stranger is found, by the bits that are
	// set now.
	FalsePositive float64
}

// Stats counts the bits that are set, which takes a pass over all.
func (f *Filter) Stats() Stats {
	s := Stats{Keys: f.keys, Bits: 64 * f.size, Hashes: f.hashes}
	part := f.size // words of which a key's bits are
	if f.kind == Blocked {
		part = blockWords
	}
	for from := 0; from < f.size; from += part {
		ones := 0
		for _, w := range f.words[from : from+part] {
			ones += bits.OnesCount64(w)
		}
		full := float64(ones) / float64(64*part)
		s.FalsePositive += math.Pow(full, float64(f.hashes)) * float64(part) / float64(f.size)
	}
	return s
}
