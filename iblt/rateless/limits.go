package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

const (
	// MappingVersion names the mapping and the check hash. Sketches of two
	// versions cannot be compared; peers refuse one another's by it.
	MappingVersion = 3
	// P is the prime 2^48 − 59: cells are sums in the field of P elements.
	P = keyhash.P
	// CellSize is the length of a cell on the wire, in bytes: 6 bits of count,
	// two sums of 48 bits and 26 bits of check fill 128 bits exactly.
	CellSize = 16
	// MaxCells bounds the positions of cells: a sketch, and the stream of cells
	// that a Decoder takes, end there.
	MaxCells = 1<<31 - 1
	// EstimatorSize is the size of an Estimator in bytes.
	EstimatorSize = octaves * anOctave / 8
)
