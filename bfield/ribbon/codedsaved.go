package ribbon

import (
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/bfield/internal/saved"
)

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
