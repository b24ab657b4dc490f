// Package wire is the language of a sync: its messages, their framing and
// their bounds. docs/protocol is the specification; this package is its
// implementation, and testdata holds the vectors that both agree on.
//
//	frame   = length:uvarint kind:1 body     length counts kind and body
//	uvarint = unsigned LEB128, at most 9 bytes, shortest form only
//
// A parser returns a valid message or an error: nothing needs to be validated
// again by the reader, except what depends on the state of the session. The
// bytes of a peer never choose an allocation: a frame's length is checked
// against MaxFrame, its buffer grows as the bytes arrive, and every count
// inside a body is checked against the bytes that are left.
//
// Parsed messages alias the frame that they were parsed from.
package wire
