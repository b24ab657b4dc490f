package rustfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/bfield"
)

// TestVectors holds hash, places and markers to values that the original computes.
func TestVectors(t *testing.T) {
	if h := hashOf([]byte("test")); h != (hash{0xac7d28cc74bde19d, 0x9a128231f9bd4d82}) {
		t.Errorf("the hash is %x", h)
	}
	a := newArray(shape{3, 39, 4}, 1024, nil)
	for _, c := range []struct {
		key    string
		value  uint64
		places [3]uint64
		marker uint64
	}{
		{"test", 2, [3]uint64{583, 653, 784}, 0x1b},
		{"test2", 106, [3]uint64{946, 308, 655}, 0x185},
	} {
		for i, want := range c.places {
			if got := a.place(hashOf([]byte(c.key)), i); got != want {
				t.Errorf("window %d of %s is at %d, not %d", i, c.key, got, want)
			}
		}
		code := uint64(0)
		for _, at := range places(c.value, 39, 4) {
			code |= 1 << at
		}
		if code != c.marker || rank(marker{0, c.marker}) != c.value {
			t.Errorf("the marker of %d is %x, not %x", c.value, code, c.marker)
		}
		a.insert(hashOf([]byte(c.key)), c.value)
	}
	f, err := FieldOf(a.file)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint64{"test": 2, "test2": 106} {
		if v, answer := f.Lookup([]byte(key)); v != want || answer != bfield.Found {
			t.Errorf("%s is %d, %v", key, v, answer)
		}
	}
	if _, answer := f.Lookup([]byte("test3")); answer != bfield.Absent {
		t.Errorf("test3 is %v", answer)
	}
}

func small() Config {
	return Config{Size: 4096, Hashes: 5, Nu: 108, Kappa: 3, Arrays: 3, Scale: 0.5, LeastScale: 0.4, Other: String("note")}
}

func TestSaveAndOpen(t *testing.T) {
	folder := t.TempDir()
	keys := [][]byte{[]byte("a"), []byte("b"), {}}
	// From 200,000 on the original's own insertions are wrong.
	f, err := Build(small(), keys, []uint64{199_999, 200_000, 204_155})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(folder, "x"); err != nil {
		t.Fatal(err)
	}
	g, err := Open(filepath.Join(folder, "x.0.bfd"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{199_999, 200_000, 204_155} {
		if v, a := g.Lookup(keys[i]); v != want || a != bfield.Found {
			t.Errorf("%d is read as %d, %v", want, v, a)
		}
	}
	if c := g.Config(); !bytes.Equal(c.Other, String("note")) || c.Arrays != 3 || c.Nu != 108 {
		t.Errorf("parameters %+v", c)
	}
	if err := f.Save(folder, "x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("saved over a field: %v", err)
	}
	// An array of an older, longer field would be taken for one of this.
	if err := os.WriteFile(filepath.Join(folder, "y.3.bfd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(folder, "y"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("saved beside an array: %v", err)
	}
	if err := f.Save(folder, "a/b"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("saved elsewhere: %v", err)
	}
	if all, _ := os.ReadDir(folder); len(all) != 4 {
		t.Errorf("%d files, not 4", len(all))
	}
	if err := os.Truncate(filepath.Join(folder, "x.1.bfd"), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(folder, "x.0.bfd")); !errors.Is(err, ErrFormat) {
		t.Errorf("opened with a cut array: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		values []uint64
		want   error
	}{
		"a value of θ":   {func(*Config) {}, []uint64{0, 204_156}, bfield.ErrValue},
		"two values":     {func(*Config) {}, []uint64{7, 8}, bfield.ErrContradiction},
		"too full":       {func(c *Config) { c.Size, c.Nu, c.Hashes, c.LeastScale = 129, 128, 16, 1 }, []uint64{5, 6}, ErrIndeterminate},
		"a short array":  {func(c *Config) { c.Size = 200 }, nil, ErrConfig},
		"κ of 10":        {func(c *Config) { c.Kappa = 10 }, nil, ErrConfig},
		"17 hashes":      {func(c *Config) { c.Hashes = 17 }, nil, ErrConfig},
		"ν of 129":       {func(c *Config) { c.Nu = 129 }, nil, ErrConfig},
		"no array":       {func(c *Config) { c.Arrays = 0 }, nil, ErrConfig},
		"long parameter": {func(c *Config) { c.Other = make([]byte, maxOther+1) }, nil, ErrConfig},
	} {
		config := small()
		c.change(&config)
		keys := [][]byte{[]byte("a"), []byte("a")}[:len(c.values)]
		if errors.Is(c.want, ErrIndeterminate) {
			keys[1] = []byte("b")
		}
		if _, err := Build(config, keys, c.values); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFieldOfRefuses(t *testing.T) {
	f, err := Build(small(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := f.Files()[0]
	for i := range whole {
		if _, err := FieldOf(whole[:i]); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	at := 12 + int(binary.BigEndian.Uint16(whole[2:]))
	for name, change := range map[string]func(b []byte) []byte{
		"longer":       func(b []byte) []byte { return append(b, 0) },
		"magic":        func(b []byte) []byte { b[1]++; return b },
		"no hash":      func(b []byte) []byte { b[4] = 0; return b },
		"17 hashes":    func(b []byte) []byte { b[4] = 17; return b },
		"ν of 0":       func(b []byte) []byte { b[5] = 0; return b },
		"ν of 129":     func(b []byte) []byte { b[5] = 129; return b },
		"κ of 0":       func(b []byte) []byte { b[6] = 0; return b },
		"κ of 10":      func(b []byte) []byte { b[6] = 10; return b },
		"κ over ν":     func(b []byte) []byte { b[5] = 2; return b },
		"an option":    func(b []byte) []byte { b[7] = 2; return b },
		"2^64-1 bits":  func(b []byte) []byte { copy(b[at-8:], bytes.Repeat([]byte{255}, 8)); return b },
		"no bits":      func(b []byte) []byte { clear(b[at-8 : at]); return b[:at] },
		"ν bits":       func(b []byte) []byte { clear(b[at-8 : at]); b[at-1] = 108; return b[:at+14] },
		"other length": func(b []byte) []byte { b[3]++; return b },
	} {
		if _, err := FieldOf(change(bytes.Clone(whole))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := newArray(shape{5, 107, 3}, 4096, nil)
	if _, err := FieldOf(whole, other.file); !errors.Is(err, ErrFormat) {
		t.Errorf("arrays of two fields: %v", err)
	}
	if _, err := FieldOf(); !errors.Is(err, ErrFormat) {
		t.Errorf("no array: %v", err)
	}
}

func FuzzFieldOf(f *testing.F) {
	for _, s := range []shape{{3, 39, 4}, {16, 128, 9}, {1, 1, 1}} {
		a := newArray(s, 1001, String("x"))
		a.insert(hashOf([]byte("key")), 0)
		f.Add(a.file, a.file, []byte("key"))
	}
	f.Fuzz(func(t *testing.T, one, two, key []byte) {
		g, err := FieldOf(one, two)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		v, a := g.Lookup(key)
		if a != bfield.Found && v != 0 || v > 0 && v >= g.Config().Values() {
			t.Fatalf("%d, %v", v, a)
		}
	})
}

// TestMarkersBeyond: a marker that stands for 2^32 or more, which no key was given, is
// answered like an absent key.
func TestMarkersBeyond(t *testing.T) {
	for value, want := range map[uint64]bfield.Answer{math.MaxUint32: bfield.Found, math.MaxUint32 + 1: bfield.Absent, 1 << 40: bfield.Absent} {
		a := newArray(shape{3, 128, 9}, 4096, nil)
		a.insert(hashOf([]byte("key")), value)
		f, err := FieldOf(a.file)
		if err != nil {
			t.Fatal(err)
		}
		if v, answer := f.Lookup([]byte("key")); answer != want || (v == value) != (want == bfield.Found) {
			t.Errorf("the marker of %d is answered %d, %v; want %v", value, v, answer, want)
		}
	}
}
