package rustfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/bfield"
)

// maxArrays is the most that the original makes: it counts them in a byte.
const maxArrays = 255

// Field is a B-field of rust-bfield. It does not change; any number of goroutines
// may look up at once.
type Field struct{ arrays []array }

// FieldOf is the field of which the bytes of each file are given, in their order. It
// uses them where they lie, for example mapped into memory. They must stay as they
// are for as long as the field is used.
//
// It fails with ErrFormat if they are anything but files of one field.
func FieldOf(files ...[]byte) (*Field, error) {
	if len(files) < 1 || len(files) > maxArrays {
		return nil, fmt.Errorf("a field of %d arrays: %w", len(files), ErrFormat)
	}
	f := new(Field)
	for i, data := range files {
		a, err := arrayOf(data)
		if err != nil {
			return nil, fmt.Errorf("array %d: %w", i, err)
		}
		if i > 0 && a.shape != f.arrays[0].shape {
			return nil, fmt.Errorf("array %d has other parameters than the first: %w", i, ErrFormat)
		}
		f.arrays = append(f.arrays, a)
	}
	return f, nil
}

// Open returns the field whose first file is path, which ends in "0.bfd". It reads
// all files into memory: what is done to them afterwards changes nothing. It fails
// with ErrFormat if one of them is not a whole file of the field.
func Open(path string) (*Field, error) {
	name, ok := strings.CutSuffix(path, "0.bfd")
	if !ok {
		return nil, fmt.Errorf("open %s: the name of a first array ends in 0.bfd: %w", path, ErrFormat)
	}
	var files [][]byte
	for i := 0; ; i++ {
		file := name + strconv.Itoa(i) + ".bfd"
		data, err := read(file)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", file, err)
		}
		if i == maxArrays {
			return nil, fmt.Errorf("open %s: an array too many: %w", file, ErrFormat)
		}
		files = append(files, data)
	}
	f, err := FieldOf(files...)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Another file, which may be large, is not read.
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(file, start); err != nil || string(start) != magic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		return nil, fmt.Errorf("it does not begin like an array: %w", ErrFormat)
	}
	return os.ReadFile(path)
}

// Lookup returns the value of a key: Found, or 0 and Absent, or 0 and Indeterminate,
// as bfield.Field does.
func (f *Field) Lookup(key []byte) (uint64, bfield.Answer) {
	h := hashOf(key)
	for i := range f.arrays {
		a := &f.arrays[i]
		m := a.common(h)
		switch n := m.ones(); {
		case n < a.kappa:
			return 0, bfield.Absent
		case n == a.kappa:
			value := rank(m)
			if value > math.MaxUint32 {
				return 0, bfield.Absent
			}
			return value, bfield.Found
		}
	}
	return 0, bfield.Indeterminate
}

// LookupBatch sets values[i] and answers[i] to what Lookup returns for keys[i].
func (f *Field) LookupBatch(keys [][]byte, values []uint64, answers []bfield.Answer) {
	for i, key := range keys {
		values[i], answers[i] = f.Lookup(key)
	}
}

// Config returns the parameters of the field: the scales are zero.
func (f *Field) Config() Config {
	a := &f.arrays[0]
	return Config{
		Size: a.size, Hashes: a.hashes, Nu: a.nu, Kappa: a.kappa, Arrays: len(f.arrays), Other: a.other,
	}
}

// Files returns the bytes of each file, as FieldOf takes them. They are not a copy.
func (f *Field) Files() [][]byte {
	var files [][]byte
	for i := range f.arrays {
		files = append(files, f.arrays[i].file)
	}
	return files
}
