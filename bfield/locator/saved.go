package locator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"
)

// The saved form: words of 64 bits, little-endian.
//
//	8 bytes  "LOCATE" 0x00 0x01 (the version)
//	8        seed
//	8        shards
//	8        f
//	8        delta
//	8        N, entries of the exact map
//	8        keys in several shards
//	8        bytes of the base
//	8        bytes of the field; 0 without one
//	         the exact map, if N is not 0: the 2^b + 1 starts, two a word, then
//	         the words of the remainders, then those of the codes (run.go)
//	         of each key in several shards, ascending: the key; how many shards;
//	         these, ascending, four a word
//	         the base (bfield/ribbon), the field (bfield)
//	8        XXH3 of all that is before
//
// b follows from N. Unused bits are zero, and so a Locator has one saved form. The
// checksum finds damage, not malice; whatever it covers is held against all rules
// too, and nothing is allocated that the data does not fill.
const (
	magic      = "LOCATE\x00\x01"
	headerSize = 72
	sumSize    = 8
)

var order = binary.LittleEndian

// WriteTo saves the Locator, as it is when the call begins. Changes wait until
// their own are merged with those before, some 20 ns an entry, and then go on, as
// look-ups do all the time. A reader gets it back by Open. It implements
// io.WriterTo.
func (l *Locator) WriteTo(w io.Writer) (int64, error) {
	v := l.settled()
	base, err := v.base.MarshalBinary()
	if err != nil {
		return 0, fmt.Errorf("save a locator: %w", err)
	}
	var field []byte
	if v.field != nil {
		if field, err = v.field.MarshalBinary(); err != nil {
			return 0, fmt.Errorf("save a locator: %w", err)
		}
	}
	several := l.stillSeveral(v)
	var b bytes.Buffer
	b.WriteString(magic)
	words := func(words ...uint64) {
		var eight [8]byte
		for _, word := range words {
			order.PutUint64(eight[:], word)
			b.Write(eight[:])
		}
	}
	c := l.config
	words(c.Seed, uint64(c.Shards), uint64(c.FalsePositiveBits), uint64(c.Delta))
	words(uint64(v.run.len()), uint64(len(several)), uint64(len(base)), uint64(len(field)))
	if v.run != nil {
		words(pairs(v.run.starts)...)
		words(v.run.remainders.words...)
		words(v.run.codes.words...)
	}
	for _, key := range several {
		shards := v.several[key]
		words(key, uint64(len(shards)))
		words(fours(shards)...)
	}
	sum := xxh3.New()
	all := io.MultiWriter(w, sum)
	written := int64(0)
	for _, part := range [][]byte{b.Bytes(), base, field} {
		n, err := all.Write(part)
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("save a locator: %w", err)
		}
	}
	n, err := w.Write(order.AppendUint64(nil, sum.Sum64()))
	written += int64(n)
	if err != nil {
		return written, fmt.Errorf("save a locator: %w", err)
	}
	return written, nil
}

// settled returns a view with an empty tail and nothing of before a rebuild: what
// is then seen never changes.
func (l *Locator) settled() *view {
	l.writing.Lock()
	l.fold()
	v := *l.view.Load()
	l.writing.Unlock()
	if v.older != nil {
		v.run = v.older.overlay(l.config.codeBits(), slices.Collect(v.run.all), func(int) bool { return true })
	}
	return &v
}

// stillSeveral returns the keys that still are in several shards, ascending.
func (l *Locator) stillSeveral(v *view) []uint64 {
	keys := slices.Collect(maps.Keys(v.several))
	keys = slices.DeleteFunc(keys, func(key uint64) bool {
		code, ok := v.run.get(key)
		return !ok || code != l.config.severalShards()
	})
	slices.SortFunc(keys, cmp.Compare[uint64])
	return keys
}

// pairs are numbers of 32 bits, two a word, the first one lower.
func pairs(numbers []uint32) []uint64 {
	words := make([]uint64, (len(numbers)+1)/2)
	for i, x := range numbers {
		words[i/2] |= uint64(x) << (i % 2 * 32)
	}
	return words
}

// fours are shards, four a word, the first one lowest.
func fours(shards []Shard) []uint64 {
	words := make([]uint64, (len(shards)+3)/4)
	for i, s := range shards {
		words[i/4] |= uint64(s) << (i % 4 * 16)
	}
	return words
}
