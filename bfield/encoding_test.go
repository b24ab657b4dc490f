package bfield

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/internal/saved"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/golden"
)

// sample is a field of 300 words with values below 1000, of three arrays.
func sample(t testing.TB, c Config) *Field {
	t.Helper()
	c.Seed = 0x0123456789abcdef
	var keys [][]byte
	var values []uint64
	for i := range c.Keys {
		keys = append(keys, fmt.Appendf(nil, "key %d", i))
		values = append(values, i*7919%c.Values)
	}
	f, err := Build(c, keyed.ByteStrings(keys), values)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func marshal(t testing.TB, f *Field) []byte {
	t.Helper()
	data, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestGolden pins hashes, places, whitening, codes and the format: files of
// today open tomorrow, and on other processors. A change needs a new version.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"one bit", "two bits", "four bits"} {
		c := shapes[name]
		c.Keys = 300
		f := sample(t, c)
		data := marshal(t, f)
		fmt.Fprintf(&b, "%s: %d bytes, arrays of %v keys, XXH3 %016x\nheader %s\n", name, len(data), f.Stats().LevelKeys, xxh3.Hash(data), hex.EncodeToString(data[:headOf(data)]))
		for _, word := range []string{"", "key 0", "key 299", "a stranger"} {
			k := f.keyOf(keyed.Bytes([]byte(word)))
			value, answer := f.Lookup(keyed.Bytes([]byte(word)))
			fmt.Fprintf(&b, "%q: hash %016x %016x, whitening %d, places %d %d, then %d; %v %d\n", word, k.a, k.b, k.whitening(f.codes),
				k.place(0, f.levels[0].places), k.place(1, f.levels[0].places), k.at(1).place(0, 2049-uint64(c.Nu)), answer, value)
		}
		k := f.keyOf(keyed.Number(1 << 63))
		fmt.Fprintf(&b, "number 2^63: hash %016x %016x\n", k.a, k.b)
	}
	golden.Compare(t, "testdata/golden.txt", b.String())
}

// headOf is where the arrays begin.
func headOf(data []byte) uint64 {
	return aligned(fixedHeader + uint64(data[48])*levelHeader + saved.SumSize)
}

// TestFiles saves a field and opens it again. The file is what MarshalBinary returns. What is
// done to it while the structure is open changes no answer and ends no process. A file that
// is cut, longer or not there is refused. A save that fails leaves nothing.
func TestFiles(t *testing.T) {
	c := shapes["three bits"]
	c.Keys = 5000
	f := sample(t, c)
	want := marshal(t, f)
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := errors.Join(os.WriteFile(path, append(bytes.Clone(want), "older and longer"...), 0o600), f.Save(path)); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, want) {
		t.Fatalf("the file is not what MarshalBinary returns (%v)", err)
	}
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range [][]byte{append(bytes.Clone(want), 0), want[:len(want)/2], nil} {
		// The file itself is cut and written again: the one that is open is the same.
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(marshal(t, opened), want) {
			t.Errorf("what is open is another, after its file was changed to %d bytes of %d", len(changed), len(want))
		}
		if _, err := Open(path); !errors.Is(err, ErrFormat) {
			t.Errorf("opening %d bytes of %d: %v", len(changed), len(want), err)
		}
	}
	if _, err := Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(path); err == nil {
		t.Error("saved over a folder")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("a failed save left %v, %v", left, err)
	}
	newer := bytes.Clone(want)
	newer[7] = 2
	if _, err := FieldOf(newer); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `begins with "BFIELD\x00\x02"`) {
		t.Errorf("opening a field of version 2: %v", err)
	}
}

// TestFieldOf: the bytes are not copied, which can be seen when they change.
func TestFieldOf(t *testing.T) {
	c := shapes["two bits"]
	c.Keys = 1000
	data := marshal(t, sample(t, c))
	f, err := FieldOf(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Answer{Found, Absent} {
		if _, a := f.Lookup(keyed.Bytes([]byte("key 7"))); a != want {
			t.Errorf("%d: key 7 is %v, want %v", i, a, want)
		}
		clear(data)
	}
}

// TestHostileHeaders forges what a checksum would not find: headers are signed anew.
func TestHostileHeaders(t *testing.T) {
	c := shapes["two bits"]
	c.Keys = 300
	data := marshal(t, sample(t, c))
	levels := int(data[48])
	sumAt := fixedHeader + levels*levelHeader
	huge := [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for name, forge := range map[string]func(b []byte){
		"version":          func(b []byte) { b[7] = 2 },
		"no arrays":        func(b []byte) { copy(b[48:], make([]byte, 8)) },
		"many arrays":      func(b []byte) { b[48] = 65 },
		"endless arrays":   func(b []byte) { copy(b[48:], huge[:]) },
		"ν 0":              func(b []byte) { copy(b[32:], []byte{0, 0}) },
		"ν 65535":          func(b []byte) { copy(b[32:], []byte{255, 255}) },
		"κ 0":              func(b []byte) { copy(b[34:], []byte{0, 0}) },
		"κ above ν":        func(b []byte) { b[34] = 25 },
		"k 0":              func(b []byte) { copy(b[36:], []byte{0, 0}) },
		"k 65535":          func(b []byte) { copy(b[36:], []byte{255, 255}) },
		"unknown flags":    func(b []byte) { b[38] |= 2 },
		"m/n not a number": func(b []byte) { copy(b[40:], bytes.Repeat([]byte{255}, 8)) },
		"θ 0":              func(b []byte) { copy(b[24:], make([]byte, 8)) },
		"θ above C(ν, κ)":  func(b []byte) { b[25] = 2 },
		"too many keys":    func(b []byte) { copy(b[16:], huge[:]) },
		"a long array":     func(b []byte) { copy(b[fixedHeader:], huge[:]) },
		"bits near 2^64":   func(b []byte) { copy(b[fixedHeader:], bytes.Repeat([]byte{255}, 8)) },
		"an empty array":   func(b []byte) { copy(b[fixedHeader:], make([]byte, 8)) },
		"array checksum":   func(b []byte) { b[fixedHeader+16]++ },
		"array":            func(b []byte) { b[headOf(b)+100] ^= 1 },
		"header's zeros":   func(b []byte) { b[headOf(b)-1] = 1 },
		"array's zeros":    func(b []byte) { b[len(b)-1] = 1 },
	} {
		b := bytes.Clone(data)
		forge(b)
		binary.LittleEndian.PutUint64(b[sumAt:], xxh3.Hash(b[:sumAt]))
		f := new(Field)
		if err := f.UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLoad: no bytes panic, and accepted ones are saved alike. The fuzzer signs
// what it makes, so that it gets past the checksums.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"one bit", "two bits", "one load"} {
		c := shapes[name]
		c.Keys = 30
		f.Add(marshal(f, sample(f, c)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fixedHeader {
			levels := int(data[48])
			sumAt := fixedHeader + levels*levelHeader
			if len(data) >= sumAt+8 {
				binary.LittleEndian.PutUint64(data[sumAt:], xxh3.Hash(data[:sumAt]))
			}
		}
		var g Field
		if g.UnmarshalBinary(data) != nil {
			return
		}
		for i := range uint64(50) {
			g.Lookup(keyed.Number(i * goldenRatio))
			g.Candidates(keyed.Number(i * goldenRatio))
		}
		if !bytes.Equal(marshal(t, &g), data) {
			t.Error("accepted bytes are saved differently")
		}
	})
}
