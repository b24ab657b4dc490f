package cuckoo

import (
	"fmt"
	"iter"
	"unsafe"
)

// MapConfig says how a Map begins. The zero value is a small Map that grows.
type MapConfig struct {
	// Keys is how many keys are planned. Up to these the Map does not grow, and
	// takes 12 bytes a key when they are there. Beyond them, or without a plan,
	// it takes at most 14.5, from 60,000 keys on.
	Keys int
	// Seed of the hash that places keys. An adversary that knows it can choose keys that
	// share their buckets; see ErrCrowded.
	Seed uint64
}

// Map is an exact map from 48-bit keys to 48-bit values, both kept whole. Any
// number of goroutines may read it at once, or one may change it. A caller that
// mixes the two guards it by a lock, as with a Go map.
//
// The zero Map can only be the receiver of UnmarshalBinary; NewMap returns one
// that works.
type Map[K, V ~uint64] struct{ exact exact }

// NewMap returns an empty Map, or ErrConfig.
func NewMap[K, V ~uint64](config MapConfig) (*Map[K, V], error) {
	if config.Keys < 0 || config.Keys > full(maxBuckets, mapSlots, mapLoad) {
		return nil, fmt.Errorf("cuckoo: new map: %w: %d keys", ErrConfig, config.Keys)
	}
	base := max(bucketsFor(config.Keys, mapSlots, mapLoad), mapBase)
	m := &Map[K, V]{exact: exact{
		spread: spreadOf(base, base),
		chunks: make([]*chunk, (base+chunkBuckets-1)>>chunkBits),
		mixer:  mixer{config.Seed},
		keys:   max(config.Keys, full(base, mapSlots, mapLoad)),
	}}
	m.exact.limit()
	for i := range m.exact.chunks {
		m.exact.chunks[i] = new(chunk)
	}
	return m, nil
}

// Set gives a key its value. It moves at most MaxMoves entries and looks at at
// most 2·518 buckets, however large the Map is. Errors: ErrRange, ErrCrowded;
// the Map is as it was then.
func (m *Map[K, V]) Set(key K, value V) error {
	return m.exact.set(entry{uint64(key), uint64(value)})
}

// Get returns the value of a key, and whether it has one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.exact.get(uint64(key))
	return V(v), ok
}

// Delete takes a key out and reports whether it was there. Its slot is free
// again; the Map does not shrink.
func (m *Map[K, V]) Delete(key K) bool { return m.exact.remove(uint64(key)) }

// Len is the number of keys.
func (m *Map[K, V]) Len() int { return m.exact.count }

// All yields all keys with their values, in no order that means anything. The
// Map must not change meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.exact.each(func(e entry) bool { return yield(K(e.key), V(e.value)) })
	}
}

// Stats tells how full a table is and what it took to fill it.
type Stats struct {
	Len     int
	Buckets int
	Slots   int     // of all buckets
	Load    float64 // Len / Slots
	Stash   int     // entries in the stash
	Bytes   int     // of memory
	Work    Work

	// Of a Table only.
	FingerprintBits int
	FalsePositive   float64 // expected now; see Table
}

const nodeBytes = int(unsafe.Sizeof(node{}))

// Stats returns the Map's.
func (m *Map[K, V]) Stats() Stats {
	x := &m.exact
	slots := int(x.buckets) * mapSlots
	return Stats{
		Len: x.count, Buckets: int(x.buckets), Slots: slots, Load: float64(x.count) / float64(max(slots, 1)),
		Stash: len(x.stash), Work: x.work,
		Bytes: int(unsafe.Sizeof(*m)) + len(x.chunks)*int(unsafe.Sizeof(chunk{})) + cap(x.chunks)*int(unsafe.Sizeof((*chunk)(nil))) +
			cap(x.stash)*int(unsafe.Sizeof(entry{})) + nodeBytes*cap(x.search.nodes),
	}
}
