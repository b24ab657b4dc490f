package sim

import (
	"bytes"
	"errors"
	"testing"
)

// Synced bytes survive; each unsynced write is kept, lost or torn, and over many
// seeds all three happen, also a later write without an earlier one.
func TestPowerCut(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		d := NewDisk(New(seed), 0)
		f := d.File("f")
		if f.Write(0, []byte("base")) != nil {
			t.Fatal("no room")
		}
		f.Sync()
		_ = f.Write(2, []byte("XX"))
		_ = f.Write(4, []byte("ab"))
		d.PowerCut()
		got := string(f.Bytes())
		if got[:2] != "ba" {
			t.Fatalf("seed %d: %q: what was synced is gone", seed, got)
		}
		seen[got] = true
		if d.PowerCut(); string(f.Bytes()) != got {
			t.Errorf("seed %d: a second power cut makes %q of %q", seed, f.Bytes(), got)
		}
	}
	for _, want := range []string{"base", "baXX", "baXe", "baXXab", "baseab", "baXXa"} {
		if !seen[want] {
			t.Errorf("%q never came about in %d outcomes", want, len(seen))
		}
	}
}

func TestFullDisk(t *testing.T) {
	d := NewDisk(New(1), 0)
	f := d.File("f")
	_ = f.Write(0, []byte("abcd"))
	d.Full = true
	if err := f.Write(1, []byte("xy")); err != nil {
		t.Errorf("a write into the file: %v", err)
	}
	if err := f.Write(3, []byte("xy")); !errors.Is(err, ErrFull) || string(f.Bytes()) != "axyd" {
		t.Errorf("a write beyond its end: %v, %q", err, f.Bytes())
	}
}

// A copy has the synced bytes, and is independent of its disk.
func TestCopy(t *testing.T) {
	d := NewDisk(New(1), 0)
	f := d.File("f")
	_ = f.Write(0, []byte("abcd"))
	f.Sync()
	_ = f.Write(2, []byte("XXX"))
	c := d.Copy()
	f.Sync()
	d.Flip(0)
	if got := c.File("f").Bytes(); string(got) != "abcd" || c.Flipped {
		t.Errorf("the copy holds %q", got)
	}
	if got := f.Bytes(); string(got) != "`bXXX" || !d.Flipped {
		t.Errorf("the disk holds %q", got)
	}
}

// Flip reaches every bit of every file, and a second flip restores it.
func TestFlip(t *testing.T) {
	d := NewDisk(New(1), 0)
	_ = d.File("a").Write(0, []byte{0, 0})
	_ = d.File("b").Write(0, []byte{0})
	d.File("a").Sync()
	d.File("b").Sync()
	for n := range uint64(24) {
		d.Flip(n)
	}
	if !bytes.Equal(d.File("a").Bytes(), []byte{0xff, 0xff}) || !bytes.Equal(d.File("b").Bytes(), []byte{0xff}) {
		t.Error("24 flips do not reach all 24 bits")
	}
	d.Flip(24 + 9)
	if !bytes.Equal(d.File("a").Bytes(), []byte{0xff, 0xfd}) {
		t.Errorf("%x", d.File("a").Bytes())
	}
	NewDisk(New(1), 0).Flip(5) // of nothing
}
