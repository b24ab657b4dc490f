// Package phf measures bfield/phf beside BBHash, the fastest of the simple minimal perfect
// hash functions (Limasset, Rizk, Chikhi and Peterlongo, SEA 2017). Go's ports of it could not be
// had, so that it is written here after the paper: with γ = 2, as its fast setting is.
package phf

import (
	"math/bits"

	"github.com/zeebo/xxh3"
)

// bbhash is a cascade of bit arrays. A key is in the first level where no other key has its
// bit; its number is how many bits are set before that one.
type bbhash struct {
	levels []level
	// ranks has the bits before each 512.
	words []uint64
	ranks []uint32
	// last are the numbers of the few keys behind the last level.
	last map[uint64]uint64
}

type level struct{ begin, size uint64 }

const (
	gamma     = 2
	mostLevel = 32
)

func position(key uint64, level int, size uint64) uint64 {
	hi, _ := bits.Mul64(mix(key, uint64(level)), size)
	return hi
}

func mix(key, level uint64) uint64 {
	h := (key ^ level*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>32) * 0x94d049bb133111eb
	return h ^ h>>29
}

func number(key uint64) uint64 {
	var b [8]byte
	for i := range b {
		b[i] = byte(key >> (8 * i))
	}
	return xxh3.Hash(b[:])
}

func buildBBHash(of []uint64) *bbhash {
	f := &bbhash{last: map[uint64]uint64{}}
	keys := make([]uint64, len(of))
	for i, k := range of {
		keys[i] = number(k)
	}
	for l := 0; l < mostLevel && len(keys) > 0; l++ {
		size := uint64(gamma*len(keys)+511) / 512 * 512
		once, twice := make([]uint64, size/64), make([]uint64, size/64)
		for _, k := range keys {
			p := position(k, l, size)
			twice[p/64] |= once[p/64] & (1 << (p % 64))
			once[p/64] |= 1 << (p % 64)
		}
		left := keys[:0]
		for _, k := range keys {
			if p := position(k, l, size); twice[p/64]>>(p%64)&1 != 0 {
				left = append(left, k)
			}
		}
		keys = left
		f.levels = append(f.levels, level{uint64(len(f.words)) * 64, size})
		for i := range once {
			f.words = append(f.words, once[i]&^twice[i])
		}
	}
	total := uint32(0)
	for i, w := range f.words {
		if i%8 == 0 {
			f.ranks = append(f.ranks, total)
		}
		total += uint32(bits.OnesCount64(w))
	}
	for _, k := range keys {
		f.last[k] = uint64(total) + uint64(len(f.last))
	}
	return f
}

func (f *bbhash) lookup(key uint64) uint64 {
	key = number(key)
	for l, level := range f.levels {
		p := level.begin + position(key, l, level.size)
		if f.words[p/64]>>(p%64)&1 == 0 {
			continue
		}
		rank := uint64(f.ranks[p/512])
		for _, w := range f.words[p/512*8 : p/64] {
			rank += uint64(bits.OnesCount64(w))
		}
		return rank + uint64(bits.OnesCount64(f.words[p/64]&(1<<(p%64)-1)))
	}
	return f.last[key]
}

func (f *bbhash) bits() int { return 64*len(f.words) + 32*len(f.ranks) + 128*len(f.last) }
