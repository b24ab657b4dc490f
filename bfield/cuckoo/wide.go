package cuckoo

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"unsafe"
)

// Wide is an exact map from 64-bit keys to 32-bit values, in the space of a Map
// of as many entries. Of a key's image under a bijection, 48 bits are the Map's
// key, and the other 16 are above the value. Keys whose 48 bits are also
// another's are kept in a Go map. They are n²/2^49 in the mean: two of 3·10^7.
//
// Any number of goroutines may read it at once, or one may change it. An adversary
// that knows the seed can choose keys that share 48 bits. Each of them then takes
// some 40 bytes. The zero Wide can only be the receiver of UnmarshalBinary.
type Wide[K, V ~uint64] struct {
	exact Map[uint64, uint64]
	twins map[uint64]uint64 // keys whose 48 bits were another's when they came
}

const wideValueBits = 32

// NewWide returns an empty Wide, or ErrConfig.
func NewWide[K, V ~uint64](config MapConfig) (*Wide[K, V], error) {
	m, err := NewMap[uint64, uint64](config)
	if err != nil {
		return nil, err
	}
	return &Wide[K, V]{exact: *m}, nil
}

// The bijection is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), of
// key and seed together.
const (
	wide1, wide2     = 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	narrow1, narrow2 = 0x96de1b173f119089, 0x319642b2d24d8ec3 // wide·narrow = 1 modulo 2^64
)

// split returns the Map's key, and the bits of the key that it lacks.
func (m *Wide[K, V]) split(key K) (low, high uint64) {
	x := uint64(key) + m.exact.exact.seed
	x = (x ^ x>>30) * wide1
	x = (x ^ x>>27) * wide2
	x ^= x >> 31
	return x & keyMask, x >> keyBits
}

// whole undoes split.
func (m *Wide[K, V]) whole(low, high uint64) K {
	x := high<<keyBits | low
	x = (x ^ x>>31 ^ x>>62) * narrow2
	x = (x ^ x>>27 ^ x>>54) * narrow1
	return K((x ^ x>>30 ^ x>>60) - m.exact.exact.seed)
}

// Get returns the value of a key, and whether it has one.
func (m *Wide[K, V]) Get(key K) (V, bool) {
	low, high := m.split(key)
	if v, ok := m.exact.Get(low); ok && v>>wideValueBits == high {
		return V(v & (1<<wideValueBits - 1)), true
	}
	return m.twin(key)
}

func (m *Wide[K, V]) twin(key K) (V, bool) {
	if len(m.twins) == 0 {
		return 0, false
	}
	v, ok := m.twins[uint64(key)]
	return V(v), ok
}

// GetBatch is Map.GetBatch.
func (m *Wide[K, V]) GetBatch(keys []K, values []V, found []bool) (hits int) {
	values = values[:len(keys)]
	if found != nil {
		found = found[:len(keys)]
	}
	var lows, highs, got [batch]uint64
	var there [batch]bool
	for from := 0; from < len(keys); from += batch {
		part := keys[from:min(from+batch, len(keys))]
		for i, k := range part {
			lows[i], highs[i] = m.split(k)
		}
		m.exact.GetBatch(lows[:len(part)], got[:], there[:])
		for i, k := range part {
			v, ok := V(got[i]&(1<<wideValueBits-1)), there[i] && got[i]>>wideValueBits == highs[i]
			if !ok {
				v, ok = m.twin(k)
			}
			values[from+i] = v
			if found != nil {
				found[from+i] = ok
			}
			if ok {
				hits++
			}
		}
	}
	return hits
}

// Set gives a key its value, below 2^32. Errors: ErrRange, ErrCrowded; the Wide is
// as it was then.
func (m *Wide[K, V]) Set(key K, value V) error {
	if value>>wideValueBits != 0 {
		return fmt.Errorf("cuckoo: set a value of %#x: %w: values have %d bits", uint64(value), ErrRange, wideValueBits)
	}
	if _, ok := m.twin(key); ok {
		m.twins[uint64(key)] = uint64(value)
		return nil
	}
	low, high := m.split(key)
	if v, ok := m.exact.Get(low); ok && v>>wideValueBits != high {
		if m.twins == nil {
			m.twins = map[uint64]uint64{}
		}
		m.twins[uint64(key)] = uint64(value)
		return nil
	}
	return m.exact.Set(low, high<<wideValueBits|uint64(value))
}

// Delete takes a key out and reports whether it was there.
func (m *Wide[K, V]) Delete(key K) bool {
	if _, ok := m.twin(key); ok {
		delete(m.twins, uint64(key))
		return true
	}
	low, high := m.split(key)
	if v, ok := m.exact.Get(low); !ok || v>>wideValueBits != high {
		return false
	}
	return m.exact.Delete(low)
}

// Len is the number of keys.
func (m *Wide[K, V]) Len() int { return m.exact.Len() + len(m.twins) }

// All yields all keys with their values, in no order that means anything. The
// Wide must not change meanwhile.
func (m *Wide[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for low, v := range m.exact.All() {
			if !yield(m.whole(low, v>>wideValueBits), V(v&(1<<wideValueBits-1))) {
				return
			}
		}
		for key, v := range m.twins {
			if !yield(K(key), V(v)) {
				return
			}
		}
	}
}

// twinBytes is about what an entry of a Go map takes.
const twinBytes = 40

// Stats returns the Wide's: those of its Map, and with its other keys Len and
// Bytes.
func (m *Wide[K, V]) Stats() Stats {
	s := m.exact.Stats()
	s.Len += len(m.twins)
	s.Bytes += int(unsafe.Sizeof(m.twins)) + twinBytes*len(m.twins)
	return s
}

// WriteTo saves the Wide: a Map, and then the other keys.
func (m *Wide[K, V]) WriteTo(w io.Writer) (int64, error) {
	o := newOutput(w)
	o.words(wideMagic, uint64(len(m.twins)))
	for _, key := range slices.Sorted(maps.Keys(m.twins)) {
		o.words(key, m.twins[key])
	}
	first, err := o.end()
	if err != nil {
		return first, err
	}
	second, err := m.exact.WriteTo(w)
	return first + second, err
}

// ReadWide reads a Wide that WriteTo saved, and nothing beyond, as ReadMap does.
func ReadWide[K, V ~uint64](r io.Reader) (*Wide[K, V], error) {
	m := &Wide[K, V]{}
	in := newInput(r)
	if magic := in.word(); in.err == nil && magic != wideMagic {
		return nil, errFormat("it begins with %#x, not with %#x", magic, wideMagic)
	}
	n, last := in.word(), uint64(0)
	type twin struct{ key, value uint64 }
	var twins []twin
	for i := uint64(0); i < n && in.err == nil; i++ {
		t := twin{in.word(), in.word()}
		if in.err == nil && (i > 0 && t.key <= last || t.value>>wideValueBits != 0) {
			return nil, errFormat("keys that are not in order, or a value that is too wide")
		}
		twins, last = append(twins, t), t.key
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	x, err := readExact(r)
	if err != nil {
		return nil, err
	}
	m.exact.exact = *x
	for _, t := range twins {
		low, high := m.split(K(t.key))
		if v, ok := m.exact.Get(low); ok && v>>wideValueBits == high {
			return nil, errFormat("a key is there twice")
		}
		if m.twins == nil {
			m.twins = make(map[uint64]uint64, len(twins))
		}
		m.twins[t.key] = t.value
	}
	return m, nil
}

// MarshalBinary returns what WriteTo writes.
func (m *Wide[K, V]) MarshalBinary() ([]byte, error) {
	var b bytes.Buffer
	_, err := m.WriteTo(&b)
	return b.Bytes(), err
}

// UnmarshalBinary reads what MarshalBinary returned, or leaves the Wide as it is
// and returns ErrFormat.
func (m *Wide[K, V]) UnmarshalBinary(data []byte) error {
	r := bytes.NewReader(data)
	read, err := ReadWide[K, V](r)
	if err == nil && r.Len() > 0 {
		err = errFormat("%d bytes follow it", r.Len())
	}
	if err != nil {
		return err
	}
	*m = *read
	return nil
}
