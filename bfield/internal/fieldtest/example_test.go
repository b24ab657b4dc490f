package fieldtest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// plain stores every key with its value: the shortest structure that keeps all
// promises of the suite.
type plain map[string]uint64

var (
	errContradiction = errors.New("one key with two values")
	errDamaged       = errors.New("damaged")
)

func nameOf(key keyed.Key) string {
	hi, lo := key.Hash128(0)
	return fmt.Sprint(hi, lo)
}

func build(in fieldtest.Input) (fieldtest.Field, error) {
	p := plain{}
	for i, value := range in.Values {
		name := nameOf(in.List().At(i))
		if held, ok := p[name]; ok && held != value {
			return nil, errContradiction
		}
		p[name] = value
	}
	return p, nil
}

// Lookup implements fieldtest.Field.
func (p plain) Lookup(key keyed.Key) (uint64, bool) {
	value, ok := p[nameOf(key)]
	return value, ok
}

// LookupBatch implements fieldtest.Field.
func (p plain) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	for i := range keys.Len() {
		values[i], found[i] = p.Lookup(keys.At(i))
	}
}

// MarshalBinary writes a checksum, and the entries in the order of their names.
func (p plain) MarshalBinary() ([]byte, error) {
	text, err := json.Marshal(map[string]uint64(p))
	sum := sha256.Sum256(text)
	return append(sum[:], text...), err
}

func load(data []byte) (fieldtest.Field, error) {
	if len(data) < sha256.Size {
		return nil, errDamaged
	}
	sum, p := sha256.Sum256(data[sha256.Size:]), plain{}
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil, errDamaged
	}
	return p, json.Unmarshal(data[sha256.Size:], &p)
}

// TestPlainMap holds a plain map to the suite, as the tests of packages bfield,
// ribbon and cuckoo do with their structures.
func TestPlainMap(t *testing.T) {
	fieldtest.Run(t, fieldtest.Suite{Build: build, Load: load, Contradiction: errContradiction, Large: 2000})
}
