// Package wire is the language of a sync: its messages, their framing and
// their bounds. It implements docs/protocol, which is the specification. The folder testdata
// holds the vectors that both agree on.
//
//	frame   = length:uvarint kind:1 body     length counts kind and body
//	uvarint = unsigned LEB128, at most 9 bytes, shortest form only
//
// A parser returns a valid message or an error. Its reader validates nothing again, except
// what depends on the state of the session.
//
// The bytes of a peer never choose an allocation. A frame's length is checked against
// MaxFrame, and its buffer grows as the bytes arrive. Every count inside a body is checked
// against the bytes that are left.
//
// Parsed messages alias the frame that they were parsed from.
package wire
