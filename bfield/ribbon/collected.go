package ribbon

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Feed calls yield for each of many keys, with its value, until yield returns
// false or it fails.
type Feed func(yield func(hash, value uint64) bool) error

// Several is a key that came with more than one value.
type Several struct {
	Hash   uint64
	Values []uint64 // those that differ, ascending
}

// BuildMapFrom is BuildMap for numbers that come one by one. It keeps 9 bytes
// a key while values have 8 bits, 10 while they have 16, beside the 16 of each
// build. Keys that come with several values are left out of the Map and returned;
// more than most of these are an error that wraps ErrContradiction. An error of
// the feed is returned as it is.
func BuildMapFrom(c Config, feed Feed, most int) (*Map, []Several, error) {
	if c.ValueBits < 1 || c.ValueBits > 64 {
		return nil, nil, fmt.Errorf("ribbon: values of %d bits: 1 to 64 are possible", c.ValueBits)
	}
	if err := c.checkFingerprint(); err != nil {
		return nil, nil, err
	}
	all := &collected{valueBytes: (c.ValueBits + 7) / 8}
	var wide error
	if err := feed(func(hash, value uint64) bool {
		if bits.Len64(value) > c.ValueBits {
			wide = fmt.Errorf("ribbon: value %d of key %d does not fit in %d bits", value, all.n, c.ValueBits)
			return false
		}
		all.add(hash, value)
		if all.n%turnKeys == 0 {
			giveWay()
		}
		return true
	}); err != nil {
		return nil, nil, err
	}
	if wide != nil {
		return nil, nil, wide
	}
	m, err := all.build(c)
	var several []Several
	// Hashing numbers is a bijection: what contradicts is one key.
	if errors.Is(err, errContradiction) {
		if several = all.takeSeveral(); len(several) > most {
			return nil, nil, fmt.Errorf("ribbon: %w: %d keys, more than %d", ErrContradiction, len(several), most)
		}
		m, err = all.build(c)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ribbon: %d keys: %w (%w)", all.n, ErrUnsolvable, err)
	}
	return m, several, nil
}

func (c *collected) build(config Config) (*Map, error) {
	return tablesOf(config, config.Seed, c.n, func(into []entry, from int) {
		for i := range into {
			into[i] = entry{keyed.Number(c.hash(from + i)).Hash(config.Seed), c.value(from + i)}
		}
	})
}

// collected are keys with values, in pieces: a slice that grows would be copied,
// and for that time take twice the memory.
type collected struct {
	n          int
	valueBytes int
	hashes     [][]uint64
	values     [][]byte // valueBytes each, little-endian
}

const (
	pieceBits = 16
	piece     = 1 << pieceBits
)

func (c *collected) add(hash, value uint64) {
	if c.n&(piece-1) == 0 && c.n>>pieceBits == len(c.hashes) {
		// The first piece grows: few keys take little.
		room := piece
		if c.n == 0 {
			room = 0
		}
		c.hashes = append(c.hashes, make([]uint64, 0, room))
		c.values = append(c.values, make([]byte, 0, room*c.valueBytes))
	}
	at := c.n >> pieceBits
	c.hashes[at] = append(c.hashes[at], hash)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], value)
	c.values[at] = append(c.values[at], word[:c.valueBytes]...)
	c.n++
}

func (c *collected) hash(i int) uint64 { return c.hashes[i>>pieceBits][i&(piece-1)] }

func (c *collected) value(i int) (v uint64) {
	at := i & (piece - 1) * c.valueBytes
	for j, b := range c.values[i>>pieceBits][at : at+c.valueBytes] {
		v |= uint64(b) << (8 * j)
	}
	return v
}

// set replaces key i.
func (c *collected) set(i int, hash, value uint64) {
	c.hashes[i>>pieceBits][i&(piece-1)] = hash
	at := i & (piece - 1) * c.valueBytes
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], value)
	copy(c.values[i>>pieceBits][at:], word[:c.valueBytes])
}

// cut leaves the first n keys.
func (c *collected) cut(n int) {
	c.n = n
	pieces := (n + piece - 1) >> pieceBits
	c.hashes, c.values = c.hashes[:pieces], c.values[:pieces]
	if rest := n & (piece - 1); rest != 0 {
		c.hashes[pieces-1] = c.hashes[pieces-1][:rest]
		c.values[pieces-1] = c.values[pieces-1][:rest*c.valueBytes]
	}
}

// takeSeveral takes the keys that came with several values out, all their
// copies, and returns them. The others stay in their order.
func (c *collected) takeSeveral() []Several {
	order := make([]uint32, c.n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(c.hash(int(a)), c.hash(int(b))), cmp.Compare(c.value(int(a)), c.value(int(b))))
	})
	var several []Several
	for from := 0; from < len(order); {
		hash, end := c.hash(int(order[from])), from+1
		for end < len(order) && c.hash(int(order[end])) == hash {
			end++
		}
		if first := c.value(int(order[from])); first != c.value(int(order[end-1])) {
			s := Several{hash, []uint64{first}}
			for _, i := range order[from+1 : end] {
				s.Values = append(s.Values, c.value(int(i)))
			}
			s.Values = slices.Compact(s.Values)
			several = append(several, s)
		}
		from = end
	}
	kept := 0
	for i := range c.n {
		hash := c.hash(i)
		if _, out := slices.BinarySearchFunc(several, hash, func(s Several, h uint64) int { return cmp.Compare(s.Hash, h) }); !out {
			c.set(kept, hash, c.value(i))
			kept++
		}
	}
	c.cut(kept)
	return several
}
