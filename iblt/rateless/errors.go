package rateless

import "errors"

// Errors that callers branch on, with errors.Is.
var (
	// ErrPair: the numbers are not a Pair, which has an Index from 1 to P − 1
	// and a Checksum below P. Another pair would never come out of its cells
	// again, so that a peer which asks for cells until it does would ask for
	// ever.
	ErrPair = errors.New("not a pair of numbers below p")
	// ErrCell: the bytes or numbers are not a cell.
	ErrCell = errors.New("not a cell")
	// ErrForged: a peer's cells are the difference of no two sets, because more
	// pairs came out of them than there are cells. Nothing of that decode is to
	// be trusted.
	ErrForged = errors.New("cells are not a difference of two sets")
)
