package rateless

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// TestGolden pins tables, mapping, checksums, cells and estimator: two peers that
// disagree on one of them never sync. A change needs a new MappingVersion. It is
// run on other processors too, see tools/golden-cross.sh.
func TestGolden(t *testing.T) {
	var key Key
	for i := range key {
		key[i] = byte(i*7 + 1)
	}
	w := expand(key)
	var b strings.Builder
	fmt.Fprintf(&b, "# mapping version %d, key: byte i is 7·i + 1; docs/IBLT.md section 9 says what each line is\n", MappingVersion)
	fmt.Fprintf(&b, "words: mapping %016x\n", w.mapping)
	fmt.Fprintln(&b, "# masks: digit i of the probabilities of the cells below 64, the lowest first; bit j is cell j")
	fmt.Fprintf(&b, "masks: %016x\n", w.tables.masks)
	fmt.Fprintln(&b, "# edges: those of one octave, and the digest of all up to edge 1984 under the zero key: of a record without version,")
	fmt.Fprintln(&b, "# flags and value whose key is each in hexadecimal and a space")
	fmt.Fprintf(&b, "edges 384 to 448: %d\n", w.tables.edges[joinEdge:joinEdge+octaveEdges+1])
	var bytes []byte
	for _, edge := range w.tables.edges[:lastEdge+1] {
		bytes = fmt.Appendf(bytes, "%x ", edge)
	}
	var zero keyhash.Key
	fmt.Fprintf(&b, "edges: %d bytes, %v\n", len(bytes), hexOf(zero.Digest(bytes, nil, 0, nil)))
	indices := []Index{1, 2, 3, 1234567890123, 1 << 41, p - 1}
	fmt.Fprintln(&b, "# mapping of an index: its seed, the cells below 64 as bits, stride and first edge of its blocks, the cells below 2^22")
	for _, k := range indices {
		seed := w.seed(k)
		blocks := w.tables.blocks(seed)
		fmt.Fprintf(&b, "mapping %011x: seed %016x, opening %016x, stride %d, edge %d, cells", uint64(k), seed, w.tables.opening(seed), blocks.stride, blocks.edge)
		for _, at := range cellsOf(&w, k, 1<<22) {
			fmt.Fprintf(&b, " %d", at)
		}
		fmt.Fprintln(&b)
	}
	// A digest over many longer mappings.
	bytes = bytes[:0]
	for k := Index(1); k <= 2000; k++ {
		for _, at := range cellsOf(&w, k*k*k*31, MaxCells) {
			bytes = fmt.Appendf(bytes, "%x ", at)
		}
	}
	fmt.Fprintln(&b, "# the cells below 2^31 - 1 of the indices 31·n^3, n = 1 … 2000, each in hexadecimal and a space, and their digest as above")
	fmt.Fprintf(&b, "2000 mappings: %d bytes, %v\n", len(bytes), hexOf(zero.Digest(bytes, nil, 0, nil)))

	fmt.Fprintln(&b, "# checksum of an index that says a number")
	for _, k := range indices {
		for _, rest := range []uint64{1, 2, 9876543210, 1<<34 - 2} {
			fmt.Fprintf(&b, "checksum %011x %09x: %011x\n", uint64(k), rest, uint64(Seal(k, rest)))
		}
	}
	s := NewSketch(key, 100)
	for i, k := range indices {
		s.Add(sealed(k, uint64(i+1)))
	}
	s.Remove(sealed(99, 1<<34-2))
	s.Replace(sealed(2, 2), sealed(2, 1<<34-3))
	fmt.Fprintln(&b, "# a sketch of 100 cells: the n-th index of the mappings above with the checksum that says n, n = 1 … 6; then that of 99 which")
	fmt.Fprintln(&b, "# says 2^34 - 2 is removed, which was never added, and that of 2 is replaced by the one that says 2^34 - 3. The cells that are not zero, and the estimator")
	for i, c := range s.Prefix(s.Len()) {
		if c.IsZero() {
			continue
		}
		fmt.Fprintf(&b, "cell %d: %x\n", i, AppendCells(nil, []Cell{c}))
	}
	fmt.Fprintf(&b, "estimator: %x\n", s.Estimator())
	golden.Compare(t, "testdata/golden.txt", b.String())
}

// hexOf is the number in hexadecimal, most significant digit first.
func hexOf(w [4]uint64) string { return fmt.Sprintf("%016x%016x%016x%016x", w[3], w[2], w[1], w[0]) }
