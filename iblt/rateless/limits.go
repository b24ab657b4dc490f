package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

const (
	// MappingVersion names the mapping and the form of cells. Sketches of two
	// versions cannot be compared; peers refuse one another's by it.
	MappingVersion = 4
	// P is the prime 2^42 − 11: cells are sums in the field of P elements.
	P = keyhash.P
	// CellSize is the length of a cell on the wire, in bytes. Two sums of 42 bits
	// and 4 bits of count fill 88 bits exactly.
	CellSize = 11
	// MinCells is how many cells must have come before a Decoder looks at the
	// first. One cell alone passes for one pair by chance, is zero then, and no
	// other contradicts it.
	MinCells = 12
	// MaxCells bounds the positions of cells: a sketch, and the stream of cells
	// that a Decoder takes, end there.
	MaxCells = 1<<31 - 1
	// EstimatorSize is the size of an Estimator in bytes.
	EstimatorSize = octaves * anOctave / 8
)
