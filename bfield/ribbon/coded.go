package ribbon

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/syncd-io/syncd/bfield/internal/saved"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// Coded is a Retrieval of values of variable length. A value takes the bits of its
// codeword in a Huffman code, so that frequent values take few bits. Each bit of a key's
// codeword is one equation of a Retrieval of 1 bit. A look-up asks for bit after bit
// until they are a codeword. For a key that it was not built from it returns any
// value of the code. It may be read by many goroutines at once.
type Coded struct {
	keys int
	code *code
	bits *Retrieval
}

// bitHash is the key of bit i of a codeword. Each bit has a place of its own.
// Places near each other would fill some buckets and leave others empty, and
// a fuller bucket bumps more.
func bitHash(h uint64, i int) uint64 { return h + uint64(i)*mulLevel }

// BuildCoded builds a Coded with values[i] for key i, from the Seed and Workers of
// the configuration. One key may be given more than once, if its value is the same each
// time. Otherwise the error wraps ErrContradiction.
func BuildCoded(c Config, keys keyed.List, values []uint64) (*Coded, error) {
	k := keyList{keys}
	if err := c.setWorkers(); err != nil {
		return nil, err
	}
	if k.Len() != len(values) {
		return nil, fmt.Errorf("ribbon: %d keys with %d values", k.Len(), len(values))
	}
	frequencies := map[uint64]uint64{}
	for _, v := range values {
		frequencies[v]++
	}
	if len(frequencies) > mostSymbols {
		return nil, fmt.Errorf("ribbon: a code of %d values: at most %d are possible", len(frequencies), mostSymbols)
	}
	return buildCoded(c, newCode(frequencies), k, values)
}

// buildCoded builds a Coded by a code that has all the values.
func buildCoded(c Config, code *code, k keyList, values []uint64) (*Coded, error) {
	e := equationsOf(code, values)
	r := &Retrieval{tables{keys: e.n}}
	err := k.build(c.Seed, values, func(seed uint64) (err error) {
		r.seed = seed
		r.main, err = c.table(1, 0, e.n, e.source(k, seed))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Coded{keys: k.Len(), code: code, bits: r}, nil
}

// equations are the bits of the codewords of many keys, one after the other.
type equations struct {
	words   []codeword // of each symbol
	symbols []uint32   // of each key
	begins  []int      // the first equation of each stretch of keys
	n       int
}

// stretch is how many keys have one entry in begins.
const stretch = 64

func equationsOf(c *code, values []uint64) *equations {
	e := &equations{words: c.codewords(), symbols: make([]uint32, len(values))}
	numbers := make(map[uint64]uint32, len(c.symbols))
	for i, s := range c.symbols {
		numbers[s] = uint32(i)
	}
	for i, v := range values {
		if i%stretch == 0 {
			e.begins = append(e.begins, e.n)
		}
		e.symbols[i] = numbers[v]
		e.n += int(e.words[numbers[v]].length)
	}
	return e
}

// source returns the equations for the keys hashed under seed.
func (e *equations) source(k keyList, seed uint64) source {
	return func(into []entry, from int) {
		if len(into) == 0 {
			return
		}
		// The last stretch that begins at from or before.
		at := sort.SearchInts(e.begins, from+1) - 1
		bit := from - e.begins[at]
		key := at * stretch
		for i := 0; i < len(into); key++ {
			w := e.words[e.symbols[key]]
			if bit >= int(w.length) {
				bit -= int(w.length)
				continue
			}
			for h := k.At(key).Hash(seed); bit < int(w.length) && i < len(into); bit++ {
				into[i] = entry{
					hash:  keyed.Number(bitHash(h, bit)).Hash(seed),
					value: uint64(w.bits >> (int(w.length) - 1 - bit) & 1),
				}
				i++
			}
			bit = 0
		}
	}
}

// Lookup returns the value of a key.
func (c *Coded) Lookup(key keyed.Key) uint64 {
	h := key.Hash(c.bits.seed)
	if len(c.code.symbols) == 0 {
		return 0
	}
	bits := uint64(0)
	for d := (decoder{}); ; d.longer(c.code) {
		if value, ok := d.symbol(c.code, bits); ok {
			return value
		}
		bits = bits<<1 | c.bits.Lookup(keyed.Number(bitHash(h, d.length)))
	}
}

// codedBatch is how many keys go from bit to bit together. They are some
// batches, as fewer and fewer of them have another bit.
const codedBatch = 8 * batch

// LookupBatch sets values[i] to the value of key i. It waits for the memory of the
// same bit of many keys at once. So it is faster than Lookup for each. It panics if
// values is shorter than keys.
func (c *Coded) LookupBatch(keys keyed.List, values []uint64) {
	values = values[:keys.Len()]
	clear(values)
	if len(c.code.symbols) == 0 {
		return
	}
	var hashes, asked, answers, bits [codedBatch]uint64
	var at [codedBatch]int // the keys without a codeword yet
	for from := 0; from < len(values); from += codedBatch {
		left := min(codedBatch, len(values)-from)
		for i := range left {
			at[i], hashes[i], bits[i] = from+i, keys.At(from+i).Hash(c.bits.seed), 0
		}
		for d := (decoder{}); ; d.longer(c.code) {
			kept := 0
			for i := range left {
				value, ok := d.symbol(c.code, bits[i])
				if ok {
					values[at[i]] = value
					continue
				}
				at[kept], hashes[kept], bits[kept] = at[i], hashes[i], bits[i]
				asked[kept] = bitHash(hashes[i], d.length)
				kept++
			}
			if left = kept; left == 0 {
				break
			}
			c.bits.LookupBatch(keyed.Numbers(asked[:left]), answers[:left])
			for i := range left {
				bits[i] = bits[i]<<1 | answers[i]
			}
		}
	}
}

// Stats tells of keys, bits and overhead. Bits has the values of the code, and
// Overhead is over the bits of all keys' codewords.
func (c *Coded) Stats() Stats {
	s := Stats{Keys: c.keys, FalsePositive: 1}
	s.add(c.bits.main)
	s.Bits += 64 * len(c.code.symbols)
	if c.bits.keys > 0 {
		s.Overhead = float64(s.Bits)/float64(c.bits.keys) - 1
	}
	return s
}

// The saved format of a Coded. All numbers are little-endian.
//
//	4 bytes  "RIBC"
//	1        version: 1
//	3        0
//	8        keys
//	4 each   codewords of 0, 1, … 32 bits: with 2^-length each they sum to 1, or
//	         there are no keys and no codewords
//	8 each   their values, ascending among those of one length
//	         a Retrieval of 1 bit, in its own saved format
//	8        XXH3 of all that is before
var codedFormat = saved.Format{Magic: "RIBC\x01\x00\x00\x00", Err: ErrFormat}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (c *Coded) MarshalBinary() ([]byte, error) {
	bits, err := c.bits.MarshalBinary()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(codedFormat.Magic)+8+4*len(c.code.counts)+8*len(c.code.symbols)+len(bits)+saved.SumSize)
	b = saved.Append(append(b, codedFormat.Magic...), uint64(c.keys))
	for _, count := range c.code.counts {
		b = binary.LittleEndian.AppendUint32(b, uint32(count))
	}
	b = saved.Append(b, c.code.symbols...)
	return saved.Sealed(append(b, bits...)), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with
// an error that wraps ErrFormat, without more memory than twice what data has. It
// keeps no part of data.
func (c *Coded) UnmarshalBinary(data []byte) error { return saved.Unmarshal(c, data, parseCoded) }

func parseCoded(data []byte) (*Coded, error) {
	in := codedFormat.Read(data)
	keys := in.Word()
	code := parseCode(in)
	if keys > 1<<57 || len(code.symbols) == 0 && keys > 0 {
		return nil, in.Errorf("%d keys, %d codewords", keys, len(code.symbols))
	}
	bits := new(Retrieval)
	if err := bits.UnmarshalBinary(in.Bytes(in.Left())); err != nil {
		return nil, in.Errorf("the bits of the codewords: %v", err)
	}
	shortest, longest := code.bounds()
	if n := uint64(bits.keys); bits.ValueBits() != 1 || n < keys*shortest || n > keys*longest {
		return nil, in.Errorf("%d values of %d bits for %d codewords of %d to %d", n, bits.ValueBits(), keys, shortest, longest)
	}
	return &Coded{keys: int(keys), code: code, bits: bits}, in.End()
}

func parseCode(in *saved.Reader) *code {
	c := new(code)
	n := uint64(0)
	for length := range c.counts {
		c.counts[length] = uint64(in.Uint32())
		n += c.counts[length]
	}
	if n > mostSymbols {
		in.Refuse("%d codewords", n)
	}
	if n > 0 && !c.whole() {
		in.Refuse("the lengths of the codewords are of no whole prefix-free code")
	}
	if c.symbols = in.Words(n); in.Err() != nil {
		return c
	}
	from := uint64(0)
	for length, count := range c.counts {
		if !slices.IsSorted(c.symbols[from : from+count]) {
			in.Refuse("the values with codewords of %d bits are not in order", length)
		}
		from += count
	}
	all := slices.Clone(c.symbols)
	slices.Sort(all)
	if len(slices.Compact(all)) != len(c.symbols) {
		in.Refuse("a value has two codewords")
	}
	return c
}
