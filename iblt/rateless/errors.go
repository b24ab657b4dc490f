package rateless

import "errors"

// Errors that callers branch on, with errors.Is.
var (
	// ErrPair: the numbers are not a Pair. A Pair has an Index from 1 to P − 1
	// and a Checksum that Seal made for it. Another pair would never come out of
	// its cells again. A peer that asks for cells until it does would ask for
	// ever.
	ErrPair = errors.New("not an index below p and a checksum sealed for it")
	// ErrCell: the bytes or numbers are not a cell.
	ErrCell = errors.New("not a cell")
	// ErrForged: the decode was given up. More pairs came out of the cells, were put
	// back or were refused than their number allows: 4 a cell. Cells of two sets
	// needed 1.13 at most. So the peer's are forged, or ours were kept wrong. What
	// was found may be wrong.
	ErrForged = errors.New("cells are not a difference of two sets")
)
