package rateless

import "fmt"

// Kind tells on which side a difference is.
type Kind uint8

// The kinds of difference, as seen by the side that decodes.
const (
	MissingHere  Kind = iota + 1 // they hold the index, we do not
	MissingThere                 // we hold the index, they do not
	Mismatched                   // both hold it, with different checksums
)

func (k Kind) String() string {
	switch k {
	case MissingHere:
		return "missing here"
	case MissingThere:
		return "missing there"
	case Mismatched:
		return "mismatched"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Difference is one index at which two sets differ. The Checksum of a side
// that does not hold the index is 0.
type Difference struct {
	Kind   Kind
	Index  Index
	Theirs Checksum
	Ours   Checksum
}

// Source hands out the cells [from, to) of the local set, all as of one
// moment. A *Sketch is a Source.
type Source interface {
	Cells(from, to int) ([]Cell, error)
}

// Lookup writes to sums[i] the local checksum under indices[i], or 0 where
// there is none. The checksums are of the same moment as the cells of the
// Source.
type Lookup func(indices []Index, sums []Checksum) error
