package roster

import "errors"

// Errors that callers branch on, with errors.Is, besides dbadapter.ErrLimit.
var (
	// ErrMalformed: the bytes are no statement of this namespace, or the
	// signature is wrong.
	ErrMalformed = errors.New("malformed statement")
	// ErrRefused: by what the statement had seen, its author could not make it.
	// It is refused for ever, on each node.
	ErrRefused = errors.New("statement refused")
)
