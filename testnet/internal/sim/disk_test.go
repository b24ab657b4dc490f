package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Synced entries survive; of the others a number that the seed draws.
func TestPowerCut(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(50) {
		d := NewDisk(New(seed), 0)
		f := d.File("f")
		for n, entry := range []string{"a", "b", "c"} {
			if err := f.Append([]byte(entry)); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				f.Sync()
			}
		}
		d.PowerCut()
		got := fmt.Sprintf("%s", f.Entries())
		seen[got] = true
		if d.PowerCut(); fmt.Sprintf("%s", f.Entries()) != got {
			t.Errorf("seed %d: a second power cut makes %s of %s", seed, f.Entries(), got)
		}
	}
	if len(seen) != 3 || !seen["[a]"] || !seen["[a b]"] || !seen["[a b c]"] {
		t.Errorf("power cuts leave %v", seen)
	}
}

func TestFullDisk(t *testing.T) {
	d := NewDisk(New(1), 0)
	f := d.File("f")
	_ = f.Append([]byte("a"))
	d.Full = true
	if err := f.Append([]byte("b")); !errors.Is(err, ErrFull) || !errors.Is(f.Replace(nil), ErrFull) || string(f.Bytes()) != "a" {
		t.Errorf("a write to a full disk: %v, %q", err, f.Entries())
	}
}

// A copy has the synced entries, and is independent of its disk.
func TestCopy(t *testing.T) {
	d := NewDisk(New(1), 0)
	f := d.File("f")
	_ = f.Append([]byte("a"))
	f.Sync()
	_ = f.Append([]byte("b"))
	c := d.Copy()
	f.Sync()
	d.Flip(0)
	if got := c.File("f").Entries(); len(got) != 1 || string(got[0]) != "a" || c.Flipped {
		t.Errorf("the copy holds %q", got)
	}
	if got := f.Entries(); len(got) != 2 || string(got[0]) != "`" || !d.Flipped {
		t.Errorf("the disk holds %q", got)
	}
}

// Flip reaches every bit of every file, and a second flip restores it.
func TestFlip(t *testing.T) {
	d := NewDisk(New(1), 0)
	_ = d.File("a").Append([]byte{0})
	_ = d.File("a").Append([]byte{0})
	_ = d.File("b").Replace([]byte{0})
	d.File("a").Sync()
	all := func() []byte { return slices.Concat(bytes.Join(d.File("a").Entries(), nil), d.File("b").Bytes()) }
	for n := range uint64(24) {
		d.Flip(n)
	}
	if got := all(); !bytes.Equal(got, []byte{0xff, 0xff, 0xff}) {
		t.Errorf("24 flips do not reach all 24 bits: %x", got)
	}
	d.Flip(24 + 9)
	if got := all(); !bytes.Equal(got, []byte{0xff, 0xfd, 0xff}) {
		t.Errorf("%x", got)
	}
	NewDisk(New(1), 0).Flip(5) // of nothing
}
