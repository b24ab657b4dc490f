package bloom

import (
	"bytes"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/internal/saved"
	"github.com/syncd-io/syncd/bfield/keyed"
)

func samples(t testing.TB) map[string]*Filter {
	all := map[string]*Filter{}
	for name, c := range map[string]Config{
		"blocked":            {Keys: 1000, BitsPerKey: 13, Seed: 1},
		"blocked of nothing": {BitsPerKey: 8},
		"classic":            {Keys: 1000, FalsePositive: 0.01, Kind: Classic, Seed: 2},
	} {
		f, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Keys {
			f.Insert(keyed.Number(uint64(i) * mulPlaces))
		}
		all[name] = f
	}
	return all
}

var forms = fieldtest.Forms[*Filter]{
	Samples: samples, Read: parse, Err: ErrFormat,
	Golden: map[string]uint64{
		"blocked":            0x6d692d10aaa4ef8c,
		"blocked of nothing": 0x2337f376c94265a0,
		"classic":            0x1c2c28e1eb7c84a7,
	},
	Ask: func(_ *testing.T, s *Filter) {
		for i := range uint64(100) {
			s.Lookup(keyed.Number(i * mulStep))
		}
		s.Stats()
	},
}

func TestGolden(t *testing.T)    { forms.Test(t) }
func FuzzUnmarshal(f *testing.F) { forms.Fuzz(f) }

// Each field of the header, set to what no filter has, is refused by itself.
func TestHeadersThatCannotBe(t *testing.T) {
	good, _ := samples(t)["blocked"].MarshalBinary()
	if err := new(Filter).UnmarshalBinary(fieldtest.Resealed(good)); err != nil {
		t.Fatal(err)
	}
	for at, value := range map[int]byte{0: 'X', 4: 2, 5: kinds, 6: 0, 7: 1, 23: 0xff} {
		bad := bytes.Clone(good)
		bad[at] = value
		if err := new(Filter).UnmarshalBinary(fieldtest.Resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("byte %d set to %d: %v", at, value, err)
		}
	}
	for _, bad := range [][]byte{good[:len(format.Magic)+3+2*8+saved.SumSize], good[:len(good)-8], good[:len(good)-1]} {
		if err := new(Filter).UnmarshalBinary(fieldtest.Resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%d of %d bytes: %v", len(bad), len(good), err)
		}
	}
}
