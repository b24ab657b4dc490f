package phf_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/phf"
)

// A static map whose keys take two and a half bits each: the values of a fixed set of keys,
// at the keys' numbers.
func Example() {
	keys := [][]byte{[]byte("amber"), []byte("birch"), []byte("cedar")}
	f, err := phf.Build(phf.Config{Minimal: true}, keyed.ByteStrings(keys))
	if err != nil {
		panic(err)
	}
	colours := make([]string, f.Slots())
	for i, colour := range []string{"yellow", "white", "red"} {
		colours[f.Lookup(keyed.Bytes(keys[i]))] = colour
	}
	fmt.Println(len(colours), colours[f.Lookup(keyed.Bytes([]byte("birch")))])
	// Output: 3 white
}
