package keyed

import "bytes"

// List is the keys of a build or of a batch: byte strings, or 64-bit numbers.
type List struct {
	Bytes   [][]byte
	Numbers []uint64
}

// Len is the number of keys.
func (l List) Len() int { return max(len(l.Bytes), len(l.Numbers)) }

// Hash returns the hash of key i under the seed.
func (l List) Hash(i int, seed uint64) uint64 {
	if l.Bytes != nil {
		return Bytes(l.Bytes[i], seed)
	}
	return Uint64(l.Numbers[i], seed)
}

// Equal reports whether keys i and j are one.
func (l List) Equal(i, j int) bool {
	if l.Bytes != nil {
		return bytes.Equal(l.Bytes[i], l.Bytes[j])
	}
	return l.Numbers[i] == l.Numbers[j]
}
