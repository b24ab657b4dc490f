package ribbon_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// keysOf makes n keys that begin with a word.
func keysOf(word string, n int) (keys [][]byte) {
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "%s %d", word, i))
	}
	return keys
}

// A map from fixed keys to small values: each key answers its value, and a key
// that was not inserted answers "absent", but for one in 2^16.
func ExampleBuildMap() {
	keys := keysOf("key", 100_000)
	values := make([]uint64, len(keys))
	for i := range values {
		values[i] = uint64(i % 256)
	}
	m, err := ribbon.BuildMap(ribbon.Config{ValueBits: 8, FingerprintBits: 16}, keyed.ByteStrings(keys), values)
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Lookup(keyed.Bytes(keys[1000])))
	_, found := m.Lookup(keyed.Bytes([]byte("never inserted")))
	fmt.Println(found)
	saved, err := m.MarshalBinary()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f bits a key, of 24\n", float64(8*len(saved))/float64(len(keys)))
	// Output:
	// 232 true
	// false
	// 24.1 bits a key, of 24
}

// A retrieval stores the values alone: it answers something for any key.
func ExampleBuildRetrieval() {
	keys := keysOf("key", 1000)
	values := make([]uint64, len(keys))
	for i := range values {
		values[i] = uint64(i)
	}
	r, err := ribbon.BuildRetrieval(ribbon.Config{ValueBits: 10}, keyed.ByteStrings(keys), values)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Lookup(keyed.Bytes(keys[7])), r.Lookup(keyed.Bytes(keys[999])))
	// Output: 7 999
}

// A filter tells whether a key is in the set. It errs for one in 2^8 of the
// others, and never for a key of the set.
func ExampleBuildFilter() {
	keys := keysOf("key", 10_000)
	f, err := ribbon.BuildFilter(ribbon.Config{FingerprintBits: 8}, keyed.ByteStrings(keys))
	if err != nil {
		panic(err)
	}
	in, others := 0, 0
	for _, key := range keys {
		if f.Lookup(keyed.Bytes(key)) {
			in++
		}
	}
	for _, key := range keysOf("other", 10_000) {
		if f.Lookup(keyed.Bytes(key)) {
			others++
		}
	}
	fmt.Println(in, others < 100)
	// Output: 10000 true
}
