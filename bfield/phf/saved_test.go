package phf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func samples(t testing.TB) map[string]*Function {
	keys := make([]uint64, 3000)
	for i := range keys {
		keys[i] = uint64(i) * mulSalt
	}
	all := map[string]*Function{}
	for i, c := range configs {
		for _, n := range []int{0, 1, len(keys)} {
			c.Seed = uint64(i)
			f, err := Build(c, keyed.Numbers(keys[:n]))
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%d bits, minimal %v, %d keys", f.choiceBits, c.Minimal, n)] = f
		}
	}
	return all
}

// The checksums pin the format and every constant that places a key: a function saved by
// one version must give the same numbers in the next.
func TestGoldenSavedForms(t *testing.T) {
	want := map[string]uint64{
		"1 bits, minimal false, 0 keys":    0x2b52947802117468,
		"1 bits, minimal false, 1 keys":    0x204bb323889e211e,
		"1 bits, minimal false, 3000 keys": 0xc677b3b317d75216,
		"2 bits, minimal false, 0 keys":    0x3cb0fab81ea1a7eb,
		"2 bits, minimal false, 1 keys":    0xce3ca54a1099978c,
		"2 bits, minimal false, 3000 keys": 0x3a37a0b905085754,
		"2 bits, minimal true, 0 keys":     0x75931cd426ebb28c,
		"2 bits, minimal true, 1 keys":     0xcdf4755729a31ace,
		"2 bits, minimal true, 3000 keys":  0x5c339fb284f39356,
	}
	for name, f := range samples(t) {
		data, err := f.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if got := xxh3.Hash(data); got != want[name] {
			t.Errorf("%q: %#x, want %#x", name, got, want[name])
		}
	}
}

// resealed replaces the checksum, so that what is before it is looked at.
func resealed(data []byte) []byte {
	if len(data) < sumSize {
		return data
	}
	body := bytes.Clone(data[:len(data)-sumSize])
	return binary.LittleEndian.AppendUint64(body, xxh3.Hash(body))
}

// Each field, set to what no function has, is refused by itself.
func TestFieldsThatCannotBe(t *testing.T) {
	good, _ := samples(t)["2 bits, minimal true, 3000 keys"].MarshalBinary()
	if err := new(Function).UnmarshalBinary(resealed(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at    int
		value byte
	}{
		"magic": {0, 'X'}, "version": {4, 2}, "no choices": {5, 0}, "choices of a bit": {5, 1}, "minimal": {6, 2},
		"not minimal": {6, 0}, "behind": {7, 1}, "keys": {16, 0}, "no shards": {24, 0}, "many shards": {31, 1},
		"keys of the shard": {32, 0}, "too many of them": {34, 1}, "salt": {38, 1},
		"a slot that is moved past the keys": {headerSize + 8 + 1, 0xff}, "size of the choices": {headerSize + 8 + 2*91, 0},
	} {
		bad := bytes.Clone(good)
		if bad[c.at] == c.value {
			t.Errorf("%s: byte %d is %d as it is", name, c.at, c.value)
		}
		bad[c.at] = c.value
		if err := new(Function).UnmarshalBinary(resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range len(good) {
		if err := new(Function).UnmarshalBinary(resealed(good[:n])); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
}

// Whatever bytes load, with right checksums too: numbers stay below Slots, and the function is
// saved as the same bytes.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range samples(f) {
		data, _ := s.MarshalBinary()
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = resealed(data)
		s := new(Function)
		if err := s.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v does not wrap ErrFormat", err)
			}
			return
		}
		for i := range uint64(1000) {
			if at := s.Lookup(keyed.Number(i * mulFirst)); at >= uint64(max(1, s.Slots())) {
				t.Fatalf("number %d of %d", at, s.Slots())
			}
		}
		if again, _ := s.MarshalBinary(); !bytes.Equal(again, data) {
			t.Fatal("it is saved as other bytes")
		}
	})
}
