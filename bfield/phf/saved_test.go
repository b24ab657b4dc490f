package phf

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
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

var forms = fieldtest.Forms[*Function]{
	Samples: samples, Read: parse, Err: ErrFormat,
	Golden: map[string]uint64{
		"1 bits, minimal false, 0 keys":    0x2b52947802117468,
		"1 bits, minimal false, 1 keys":    0x204bb323889e211e,
		"1 bits, minimal false, 3000 keys": 0xc677b3b317d75216,
		"2 bits, minimal false, 0 keys":    0x3cb0fab81ea1a7eb,
		"2 bits, minimal false, 1 keys":    0xce3ca54a1099978c,
		"2 bits, minimal false, 3000 keys": 0x3a37a0b905085754,
		"2 bits, minimal true, 0 keys":     0x75931cd426ebb28c,
		"2 bits, minimal true, 1 keys":     0xcdf4755729a31ace,
		"2 bits, minimal true, 3000 keys":  0x5c339fb284f39356,
	},
	Ask: func(t *testing.T, f *Function) {
		for i := range uint64(1000) {
			if at := f.Lookup(keyed.Number(i * mulFirst)); at >= uint64(max(1, f.Slots())) {
				t.Fatalf("number %d of %d", at, f.Slots())
			}
		}
	},
}

func TestGolden(t *testing.T)    { forms.Test(t) }
func FuzzUnmarshal(f *testing.F) { forms.Fuzz(f) }

// Each field, set to what no function has, is refused by itself.
func TestFieldsThatCannotBe(t *testing.T) {
	good, _ := samples(t)["2 bits, minimal true, 3000 keys"].MarshalBinary()
	if err := new(Function).UnmarshalBinary(fieldtest.Resealed(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at    int
		value byte
	}{
		"magic": {0, 'X'}, "version": {4, 2}, "no choices": {5, 0}, "choices of a bit": {5, 1}, "minimal": {6, 2},
		"not minimal": {6, 0}, "behind": {7, 1}, "keys": {16, 0}, "no shards": {24, 0}, "many shards": {31, 1},
		"keys of the shard": {32, 0}, "too many of them": {34, 1}, "salt": {38, 1},
		"a slot that is moved past the keys": {32 + 8 + 1, 0xff}, "size of the choices": {32 + 8 + 2*91, 0},
	} {
		bad := bytes.Clone(good)
		if bad[c.at] == c.value {
			t.Errorf("%s: byte %d is %d as it is", name, c.at, c.value)
		}
		bad[c.at] = c.value
		if err := new(Function).UnmarshalBinary(fieldtest.Resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range len(good) {
		if err := new(Function).UnmarshalBinary(fieldtest.Resealed(good[:n])); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
}
