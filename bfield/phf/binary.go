package phf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/ribbon"
)

// The saved format. All numbers are little-endian.
//
//	4 bytes  "PERF"
//	1        version: 1
//	1        bits of a choice: 1 or 2
//	1        1 if minimal, 0 if not
//	1        0
//	8        seed
//	8        keys
//	8        shards: 0 if there are no keys
//	for each shard:
//	  4      keys
//	  4      salt
//	for each slot behind the keys of a minimal function's shard, shard by shard:
//	  2      the number in the shard that stands for it; 0 if the slot is empty
//	8        bytes of the choices: a ribbon.Retrieval of the keys' hashes, as 64-bit keys,
//	         in its own saved format
//	         the choices
//	8        XXH3 of all that is before
const (
	magic      = "PERF"
	version    = 1
	headerSize = 32
	sumSize    = 8
)

// ErrFormat is wrapped by the errors of UnmarshalBinary and Open.
var ErrFormat = errors.New("not a saved perfect hash function")

func formatError(format string, args ...any) error {
	return fmt.Errorf("phf: %w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Function) MarshalBinary() ([]byte, error) {
	choices, err := f.choices.MarshalBinary()
	if err != nil {
		return nil, err
	}
	order := binary.LittleEndian
	b := make([]byte, 0, headerSize+8*len(f.shards)+2*len(f.moved)+8+len(choices)+sumSize)
	b = append(b, magic...)
	b = append(b, version, byte(f.choiceBits), 0, 0)
	if f.minimal {
		b[6] = 1
	}
	b = order.AppendUint64(b, f.seed)
	b = order.AppendUint64(b, uint64(f.keys))
	b = order.AppendUint64(b, uint64(len(f.shards)))
	for _, s := range f.shards {
		b = order.AppendUint32(b, s.keys)
		b = order.AppendUint32(b, s.salt)
	}
	for _, m := range f.moved {
		b = order.AppendUint16(b, m)
	}
	b = order.AppendUint64(b, uint64(len(choices)))
	b = append(b, choices...)
	return order.AppendUint64(b, xxh3.Hash(b)), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with an
// error that wraps ErrFormat, without more memory than data has. It keeps no part of data.
func (f *Function) UnmarshalBinary(data []byte) error {
	if len(data) < headerSize+8+sumSize {
		return formatError("%d bytes are too few", len(data))
	}
	if string(data[:4]) != magic {
		return formatError("it begins with %q", data[:4])
	}
	order := binary.LittleEndian
	body := data[:len(data)-sumSize]
	if xxh3.Hash(body) != order.Uint64(data[len(body):]) {
		return formatError("the checksum is of other bytes")
	}
	if data[4] != version {
		return formatError("version %d", data[4])
	}
	bits, err := Config{ChoiceBits: int(data[5]), Minimal: data[6] == 1}.bits()
	if err != nil || data[5] == 0 || data[6] > 1 || data[7] != 0 {
		return formatError("choices of %d bits, minimal %d, and %d behind", data[5], data[6], data[7])
	}
	read := Function{choiceBits: bits, minimal: data[6] == 1, seed: order.Uint64(data[8:])}
	body, err = read.parseShards(order.Uint64(data[16:]), order.Uint64(data[24:]), body[headerSize:])
	if err != nil {
		return err
	}
	if err := read.parseChoices(body); err != nil {
		return err
	}
	*f = read
	return nil
}

func (f *Function) parseShards(keys, shards uint64, data []byte) (rest []byte, err error) {
	order := binary.LittleEndian
	if shards > uint64(len(data))/8 || (shards == 0) != (keys == 0) {
		return nil, formatError("%d shards of %d keys in %d bytes", shards, keys, len(data))
	}
	f.shards = make([]shard, shards)
	sum := uint64(0)
	for i := range f.shards {
		f.shards[i] = shard{keys: order.Uint32(data), salt: order.Uint32(data[4:])}
		if f.shards[i].keys >= 1<<16 || f.shards[i].salt >= mostSalts {
			return nil, formatError("shard %d has %d keys, salt %d", i, f.shards[i].keys, f.shards[i].salt)
		}
		sum += uint64(f.shards[i].keys)
		data = data[8:]
	}
	if sum != keys {
		return nil, formatError("the shards have %d keys, not %d", sum, keys)
	}
	f.keys = int(keys)
	f.number()
	if !f.minimal {
		return data, nil
	}
	moved := f.movedSlots()
	if moved > len(data)/2 {
		return nil, formatError("%d slots behind the keys in %d bytes", moved, len(data))
	}
	f.moved = make([]uint16, moved)
	for i, s := range f.shards {
		for j := range slotsOf(int(s.keys), f.choiceBits) - int(s.keys) {
			m := order.Uint16(data)
			if m != 0 && uint32(m) >= s.keys {
				return nil, formatError("slot %d of shard %d, of %d keys, is moved to %d", j, i, s.keys, m)
			}
			f.moved[s.moved+uint64(j)] = m
			data = data[2:]
		}
	}
	return data, nil
}

func (f *Function) parseChoices(data []byte) error {
	if len(data) < 8 {
		return formatError("it ends before the choices")
	}
	size, data := binary.LittleEndian.Uint64(data), data[8:]
	if size != uint64(len(data)) {
		return formatError("%d bytes of choices of %d keys; %d are there", size, f.keys, len(data))
	}
	f.choices = new(ribbon.Retrieval)
	if err := f.choices.UnmarshalBinary(data); err != nil {
		return fmt.Errorf("phf: %w: choices: %w", ErrFormat, err)
	}
	if f.choices.ValueBits() != f.choiceBits {
		return formatError("choices of %d bits are kept in %d", f.choiceBits, f.choices.ValueBits())
	}
	return nil
}
