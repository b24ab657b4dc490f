package dbadapter

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The sum carries from word to word, and the bytes are little-endian.
func TestDigestForms(t *testing.T) {
	d := Digest{1, 2, 3, 4}
	if got, want := d.Add(Digest{^uint64(0), ^uint64(0), 1}).String(), "0000000000000004000000000000000500000000000000020000000000000000"; got != want {
		t.Errorf("the sum is %s, not %s", got, want)
	}
	if got, want := fmt.Sprintf("%x", d.AppendBinary(nil)), "0100000000000000020000000000000003000000000000000400000000000000"; got != want {
		t.Errorf("the bytes are %s, not %s", got, want)
	}
}

func TestDigestsAreAGroup(t *testing.T) {
	digest := rapid.Custom(func(t *rapid.T) Digest {
		var d Digest
		for i := range d {
			d[i] = rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1<<64 - 1})).Draw(t, "word")
		}
		return d
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := digest.Draw(t, "a"), digest.Draw(t, "b"), digest.Draw(t, "c")
		if a.Add(b).Add(c) != c.Add(a).Add(b) || a.Add(b).Sub(b) != a || !a.Sub(a).IsZero() {
			t.Fatal("sums of digests depend on their order")
		}
		if DigestFromBytes([DigestSize]byte(a.AppendBinary(nil))) != a {
			t.Fatal("a digest's bytes are another's")
		}
	})
}
