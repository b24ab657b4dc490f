package cuckoo

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// A saved table is little-endian words of 64 bits. They are what it is, how it
// was made, its buckets, the stash, and last the XXH3 of all before. The
// checksum finds damage, not malice. The bytes are also checked against the
// rules of the table. So one that was read cannot differ in kind from one that
// was built.
const (
	mapMagic   = "ckmap\x00\x00\x01" // version 1
	tableMagic = "cktab\x00\x00\x01"
)

// output is the words of a saved table so far.
type output []byte

func (o *output) words(words ...uint64) {
	for _, w := range words {
		*o = binary.LittleEndian.AppendUint64(*o, w)
	}
}

// sealed is the saved table, with its checksum.
func (o output) sealed() []byte { return binary.LittleEndian.AppendUint64(o, xxh3.Hash(o)) }

// input reads what output wrote. After an error it yields zeros.
type input struct {
	rest []byte
	err  error
}

// newInput is what is between the magic and the checksum.
func newInput(data []byte, magic string) *input {
	n := len(data) - 8
	switch {
	case n < len(magic):
		return &input{err: errFormat("it is cut short")}
	case string(data[:len(magic)]) != magic:
		return &input{err: errFormat("it begins with %q, not with %q", data[:len(magic)], magic)}
	case binary.LittleEndian.Uint64(data[n:]) != xxh3.Hash(data[:n]):
		return &input{err: errFormat("its checksum does not fit")}
	}
	return &input{rest: data[len(magic):n]}
}

// block returns the next n words. The caller bounds n, since after an error memory is
// made for them.
func (in *input) block(n int) []byte {
	if in.err == nil && len(in.rest) < 8*n {
		in.err = errFormat("it is cut short")
	}
	if in.err != nil {
		return make([]byte, 8*n)
	}
	b := in.rest[:8*n]
	in.rest = in.rest[8*n:]
	return b
}

func (in *input) word() uint64 { return binary.LittleEndian.Uint64(in.block(1)) }

// end makes sure that nothing is left.
func (in *input) end() error {
	if in.err == nil && len(in.rest) > 0 {
		in.err = errFormat("%d bytes follow it", len(in.rest))
	}
	return in.err
}
