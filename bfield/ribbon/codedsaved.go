package ribbon

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
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
const (
	codedMagic  = "RIBC"
	codedHeader = 16 + 4*(longestCodeword+1)
)

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (c *Coded) MarshalBinary() ([]byte, error) {
	bits, err := c.bits.MarshalBinary()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, codedHeader+8*len(c.code.symbols)+len(bits)+sumSize)
	b = append(b, codedMagic...)
	b = append(b, version, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.keys))
	for _, count := range c.code.counts {
		b = binary.LittleEndian.AppendUint32(b, uint32(count))
	}
	for _, s := range c.code.symbols {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	b = append(b, bits...)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with
// an error that wraps ErrFormat, without more memory than twice what data has. It
// keeps no part of data.
func (c *Coded) UnmarshalBinary(data []byte) error {
	if len(data) < codedHeader+sumSize {
		return formatError("%d bytes are too few", len(data))
	}
	if string(data[:4]) != codedMagic {
		return formatError("it begins with %q", data[:4])
	}
	if [4]byte(data[4:8]) != [4]byte{version} {
		return formatError("version %d is unknown; this is version %d", data[4:8], version)
	}
	body := data[:len(data)-sumSize]
	if xxh3.Hash(body) != binary.LittleEndian.Uint64(data[len(body):]) {
		return formatError("the checksum does not match")
	}
	keys := binary.LittleEndian.Uint64(data[8:])
	if keys > 1<<57 {
		return formatError("%d keys", keys)
	}
	code, rest, err := parseCode(body[16:])
	if err != nil {
		return err
	}
	if len(code.symbols) == 0 && keys > 0 {
		return formatError("%d keys and no codewords", keys)
	}
	bits := new(Retrieval)
	if err := bits.UnmarshalBinary(rest); err != nil {
		return fmt.Errorf("%w (the bits of the codewords)", err)
	}
	shortest, longest := code.bounds()
	if n := uint64(bits.keys); bits.ValueBits() != 1 || n < keys*shortest || n > keys*longest {
		return formatError("%d values of %d bits for %d codewords of %d to %d", n, bits.ValueBits(), keys, shortest, longest)
	}
	*c = Coded{keys: int(keys), code: code, bits: bits}
	return nil
}

// parseCode reads a code, and returns the bytes after it.
func parseCode(data []byte) (*Code, []byte, error) {
	c := new(Code)
	n := uint64(0)
	for length := range c.counts {
		c.counts[length], data = uint64(binary.LittleEndian.Uint32(data)), data[4:]
		n += c.counts[length]
	}
	if n > mostSymbols || n > uint64(len(data))/8 {
		return nil, nil, formatError("%d codewords in %d bytes", n, len(data))
	}
	if n > 0 && !c.whole() {
		return nil, nil, formatError("the lengths of the codewords are of no whole prefix-free code")
	}
	c.symbols, data = copiedWords(data[:8*n]), data[8*n:]
	from := uint64(0)
	for length, count := range c.counts {
		if !slices.IsSorted(c.symbols[from : from+count]) {
			return nil, nil, formatError("the values with codewords of %d bits are not in order", length)
		}
		from += count
	}
	all := slices.Clone(c.symbols)
	slices.Sort(all)
	if len(slices.Compact(all)) != len(c.symbols) {
		return nil, nil, formatError("a value has two codewords")
	}
	return c, data, nil
}
