package phf

import (
	"encoding/binary"
	"errors"

	"github.com/syncd-io/syncd/bfield/internal/saved"
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
var format = saved.Format{Magic: "PERF\x01", Err: ErrFormat}

// ErrFormat is wrapped by the errors of UnmarshalBinary.
var ErrFormat = errors.New("phf: not a saved function")

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Function) MarshalBinary() ([]byte, error) {
	choices, err := f.choices.MarshalBinary()
	if err != nil {
		return nil, err
	}
	order := binary.LittleEndian
	b := make([]byte, 0, len(format.Magic)+3+8*(4+len(f.shards))+2*len(f.moved)+len(choices)+saved.SumSize)
	b = append(append(b, format.Magic...), byte(f.choiceBits), 0, 0)
	if f.minimal {
		b[len(format.Magic)+1] = 1
	}
	b = saved.Append(b, f.seed, uint64(f.keys), uint64(len(f.shards)))
	for _, s := range f.shards {
		b = order.AppendUint32(b, s.keys)
		b = order.AppendUint32(b, s.salt)
	}
	for _, m := range f.moved {
		b = order.AppendUint16(b, m)
	}
	b = append(saved.Append(b, uint64(len(choices))), choices...)
	return saved.Sealed(b), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with an
// error that wraps ErrFormat, without more memory than data has. It keeps no part of data.
func (f *Function) UnmarshalBinary(data []byte) error { return saved.Unmarshal(f, data, parse) }

func parse(data []byte) (*Function, error) {
	in := format.Read(data)
	bits, minimal, zero := in.Byte(), in.Byte(), in.Byte()
	f := &Function{choiceBits: int(bits), minimal: minimal == 1, seed: in.Word()}
	keys := in.Word()
	if _, err := (Config{ChoiceBits: f.choiceBits, Minimal: f.minimal}).bits(); err != nil || bits == 0 || minimal > 1 || zero != 0 {
		return nil, in.Errorf("choices of %d bits, minimal %d, and %d behind", bits, minimal, zero)
	}
	f.parseShards(in, keys)
	f.choices = new(ribbon.Retrieval)
	size := in.Word()
	if size != in.Left() {
		return nil, in.Errorf("%d bytes of choices of %d keys; %d are there", size, f.keys, in.Left())
	}
	if err := f.choices.UnmarshalBinary(in.Bytes(size)); err != nil {
		return nil, in.Errorf("choices: %v", err)
	}
	if f.choices.ValueBits() != f.choiceBits {
		return nil, in.Errorf("choices of %d bits are kept in %d", f.choiceBits, f.choices.ValueBits())
	}
	return f, in.End()
}

func (f *Function) parseShards(in *saved.Reader, keys uint64) {
	shards := in.Word()
	if shards > in.Left()/8 || (shards == 0) != (keys == 0) {
		in.Refuse("%d shards of %d keys in %d bytes", shards, keys, in.Left())
		return
	}
	f.shards = make([]shard, shards)
	sum := uint64(0)
	for i := range f.shards {
		s := shard{keys: in.Uint32(), salt: in.Uint32()}
		if s.keys >= 1<<16 || s.salt >= mostSalts {
			in.Refuse("shard %d has %d keys, salt %d", i, s.keys, s.salt)
		}
		f.shards[i] = s
		sum += uint64(s.keys)
	}
	if sum != keys {
		in.Refuse("the shards have %d keys, not %d", sum, keys)
	}
	f.keys = int(keys)
	moved := f.number()
	if moved > in.Left()/2 {
		in.Refuse("%d slots behind the keys in %d bytes", moved, in.Left())
		return
	}
	f.moved = make([]uint16, moved)
	for i := 0; i < len(f.shards) && f.minimal; i++ {
		s := f.shards[i]
		for j := range slotsOf(int(s.keys), f.choiceBits) - int(s.keys) {
			m := in.Uint16()
			if m != 0 && uint32(m) >= s.keys {
				in.Refuse("slot %d of shard %d, of %d keys, is moved to %d", j, i, s.keys, m)
			}
			f.moved[s.moved+uint64(j)] = m
		}
	}
}
