package fieldtest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
)

// plain stores every key with its value: the shortest structure that keeps all
// promises of the suite.
type plain map[string]uint64

var (
	errContradiction = errors.New("one key with two values")
	errDamaged       = errors.New("damaged")
)

func nameOf(key []byte) string      { return fmt.Sprintf("key %x", key) }
func nameOfHash(hash uint64) string { return fmt.Sprintf("hash %x", hash) }

func build(in fieldtest.Input) (fieldtest.Field, error) {
	var names []string
	for _, key := range in.Keys {
		names = append(names, nameOf(key))
	}
	for _, hash := range in.Hashes {
		names = append(names, nameOfHash(hash))
	}
	p := plain{}
	for i, name := range names {
		if held, ok := p[name]; ok && held != in.Values[i] {
			return nil, errContradiction
		}
		p[name] = in.Values[i]
	}
	return p, nil
}

// Lookup implements fieldtest.Field.
func (p plain) Lookup(key []byte) (uint64, bool) {
	value, ok := p[nameOf(key)]
	return value, ok
}

// LookupHash implements fieldtest.Field.
func (p plain) LookupHash(hash uint64) (uint64, bool) {
	value, ok := p[nameOfHash(hash)]
	return value, ok
}

// LookupBatch implements fieldtest.Field.
func (p plain) LookupBatch(keys [][]byte, values []uint64, found []bool) {
	for i, key := range keys {
		values[i], found[i] = p.Lookup(key)
	}
}

// LookupHashes implements fieldtest.Field.
func (p plain) LookupHashes(hashes []uint64, values []uint64, found []bool) {
	for i, hash := range hashes {
		values[i], found[i] = p.LookupHash(hash)
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
