package keyhash

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/internal/golden"
)

// pattern is n bytes, no two neighbours alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

// TestGolden pins all hashes: two nodes that hash differently never sync, and a
// store written by one version must be read by the next. It is run on other
// processors too, see tools/golden-cross.sh.
func TestGolden(t *testing.T) {
	key := Key(pattern(KeySize))
	var b strings.Builder
	fmt.Fprintln(&b, "# secret, key and value: byte i is 7·i + 1 modulo 256; version: the first 24 of them. Digests are printed as numbers, the")
	fmt.Fprintln(&b, "# most significant digit first; docs/protocol, \"Hashed numbers\", has the formulas")
	fmt.Fprintln(&b, "# index: length of the key")
	for _, n := range []int{0, 1, 8, 23, 24, 25, 56, 120, 121, 1024} {
		fmt.Fprintf(&b, "index %d: %011x\n", n, key.Index(pattern(n)))
	}
	fmt.Fprintln(&b, "# home: length of the key")
	for _, n := range []int{1, 24, 1024} {
		fmt.Fprintf(&b, "home %d: %016x\n", n, key.Home(pattern(n)))
	}
	version := pattern(24)
	fmt.Fprintln(&b, "# digest: lengths of key and value")
	for _, c := range []struct{ key, value int }{{0, 0}, {1, 0}, {0, 1}, {5, 3}, {16, 256}, {16, 423}, {16, 424}, {16, 425}, {16, 472}, {1024, 100}, {7, 1 << 20}} {
		for _, flags := range []byte{0, 1} {
			fmt.Fprintf(&b, "digest %d %d flags %d: %s\n", c.key, c.value, flags, hexOf(key.Digest(pattern(c.key), version, flags, pattern(c.value))))
		}
	}
	fmt.Fprintln(&b, "# head: its length, in place of the version's 24 bytes; lengths of key and value")
	for _, c := range []struct {
		head, key, value int
		flags            byte
	}{{32, 5, 3, 32}, {41, 5, 3, 64}, {49, 5, 3, 96}, {161, 5, 3, 96}, {161, 5, 300, 96}, {161, 1024, 1000, 96}} {
		fmt.Fprintf(&b, "head %d digest %d %d flags %d: %s\n", c.head, c.key, c.value, c.flags, hexOf(key.Digest(pattern(c.key), pattern(c.head), c.flags, pattern(c.value))))
	}
	// A byte moved from the key to the value: the same bytes in a row.
	whole := pattern(40)
	fmt.Fprintln(&b, "# moved n: of 40 bytes the first n are the key, the others the value; flags 0")
	for _, cut := range []int{20, 19} {
		fmt.Fprintf(&b, "moved %d: %s\n", cut, hexOf(key.Digest(whole[:cut], version, 0, whole[cut:])))
	}
	digests := [][4]uint64{{1, 2, 3, 4}, {5, 6, 7, 8}}
	fmt.Fprintln(&b, "# bucket n: Sum64 over the first n of two digests, whose words are 1 2 3 4 and 5 6 7 8, the least significant first")
	for n := range 3 {
		fmt.Fprintf(&b, "bucket %d: %016x\n", n, Bucket(&key, digests[:n]))
	}
	fmt.Fprintln(&b, "# inverse and square modulo p")
	for _, x := range []uint64{1, 2, 11, P - 1, 1 << 41} {
		fmt.Fprintf(&b, "inverse %011x: %011x, square %011x\n", x, Inv(x), Mul(x, x))
	}
	fmt.Fprintln(&b, "# seal of an index and the rest of its checksum")
	for _, k := range []uint64{1, 2, 12345678901, P - 1} {
		for _, rest := range []uint64{0, 1, 2, 9876543210, 1<<RestBits - 2, 1<<RestBits - 1} {
			fmt.Fprintf(&b, "seal %011x %09x: %011x\n", k, rest, Seal(k, rest))
		}
	}
	golden.Compare(t, "testdata/golden.txt", b.String())
}

// hexOf is the number in hexadecimal, most significant digit first.
func hexOf(w [4]uint64) string { return fmt.Sprintf("%016x%016x%016x%016x", w[3], w[2], w[1], w[0]) }

func TestMovingAByteChangesTheDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.SliceOfN(rapid.Byte(), 1, 1200).Draw(t, "bytes")
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		var s Key
		version := make([]byte, 24)
		if s.Digest(whole[:cut], version, 0, whole[cut:]) == s.Digest(whole[:cut+1], version, 0, whole[cut+1:]) {
			t.Fatal("a byte moved from value to key, and the digest stays")
		}
		if s.Digest(whole[:cut], nil, 0, whole[cut:]) == s.Digest(nil, whole[:cut], 0, whole[cut:]) && cut > 0 {
			t.Fatal("the key moved to the version, and the digest stays")
		}
		if s.Digest(whole[:cut], version[:8], 0, whole[cut:]) == s.Digest(append(bytes.Clone(version[:1]), whole[:cut]...), version[:7], 0, whole[cut:]) {
			t.Fatal("a byte moved from head to key, and the digest stays")
		}
		if s.Digest(whole, nil, 0, nil) == s.Digest(append(bytes.Clone(whole), 0), nil, 0, nil) {
			t.Fatal("a zero appended to the key, and the digest stays")
		}
	})
}

// TestDigestOfLongInputs: whether the input fits the stack or is hashed in
// parts makes no difference that depends on how the caller's slices lie.
func TestDigestOfLongInputs(t *testing.T) {
	var s Key
	value := pattern(3000)
	seen := map[[4]uint64]int{}
	for n := range 3000 {
		d := s.Digest(nil, nil, 0, value[:n])
		if other, held := seen[d]; held {
			t.Fatalf("lengths %d and %d have one digest", n, other)
		}
		seen[d] = n
	}
}

func TestIndexIsInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Key
		s[0] = rapid.Byte().Draw(t, "secret")
		k := s.Index(rapid.SliceOf(rapid.Byte()).Draw(t, "key"))
		if k < 1 || k >= P {
			t.Fatalf("index %d", k)
		}
	})
}

func TestKeysDiffer(t *testing.T) {
	for i := range KeySize {
		var a, b Key
		b[i] = 1
		if a.Index([]byte("k")) == b.Index([]byte("k")) {
			t.Errorf("byte %d of the key has no influence", i)
		}
	}
}
