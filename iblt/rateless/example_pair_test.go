package rateless_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// number hashes parts to 64 bits. The secret is shared by both
// sides and kept from those that choose the keys.
func number(secret []byte, parts ...string) uint64 {
	mac := hmac.New(sha256.New, secret)
	for _, part := range parts {
		mac.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write([]byte(part))
	}
	return binary.LittleEndian.Uint64(mac.Sum(nil))
}

// Keys and values of any kind become pairs by a keyed hash. A value that changes
// leaves the index as it is: that is what makes it one difference.
func ExamplePair() {
	pair := func(key, value string) rateless.Pair {
		index := rateless.Index(1 + number([]byte("secret"), key)%(rateless.P-1))
		return rateless.Pair{Index: index, Checksum: rateless.Seal(index, number([]byte("secret"), key, value)>>30)}
	}
	before, after := pair("/etc/motd", "welcome"), pair("/etc/motd", "farewell")
	fmt.Println(before.Index == after.Index, before.Checksum == after.Checksum)

	sketch := rateless.NewSketch(rateless.Key([]byte("the cells' key, of 32 bytes: 256")), 64)
	sketch.Add(before)
	sketch.Replace(before, after)
	sketch.Remove(after)
	fmt.Println(sketch.Prefix(1)[0].IsZero())
	// Output:
	// true false
	// true
}
