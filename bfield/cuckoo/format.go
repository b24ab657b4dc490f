package cuckoo

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/zeebo/xxh3"
)

// A saved table is little-endian words of 64 bits. They are what it is, how it
// was made, its buckets, the stash, and last the XXH3 of all before. The
// checksum finds damage, not malice. The bytes are also checked against the
// rules of the table. So one that was read cannot differ in kind from one that
// was built.
const (
	mapMagic   = uint64('c') | 'k'<<8 | 'm'<<16 | 'a'<<24 | 'p'<<32 | 1<<56 // version 1
	tableMagic = uint64('c') | 'k'<<8 | 't'<<16 | 'a'<<24 | 'b'<<32 | 1<<56
)

// output writes words and keeps their checksum.
type output struct {
	to      io.Writer
	sum     *xxh3.Hasher
	buffer  []byte
	written int64
	err     error
}

const bufferBytes = chunkBuckets * 64

func newOutput(to io.Writer) *output {
	return &output{to: to, sum: xxh3.New(), buffer: make([]byte, 0, bufferBytes)}
}

func (o *output) words(words ...uint64) {
	for _, w := range words {
		o.buffer = binary.LittleEndian.AppendUint64(o.buffer, w)
		if len(o.buffer) == bufferBytes {
			o.flush()
		}
	}
}

func (o *output) flush() {
	if o.err == nil {
		_, _ = o.sum.Write(o.buffer) // it never fails
		var n int
		n, o.err = o.to.Write(o.buffer)
		o.written += int64(n)
	}
	o.buffer = o.buffer[:0]
}

func (o *output) end() (int64, error) {
	o.flush()
	o.words(o.sum.Sum64())
	o.flush()
	return o.written, o.err
}

// input reads what output wrote. It allocates no more than it has read so far,
// so that no header chooses an allocation. After an error it yields zeros.
type input struct {
	from   io.Reader
	sum    *xxh3.Hasher
	buffer []byte
	err    error
}

func newInput(from io.Reader) *input { return &input{from: from, sum: xxh3.New()} }

// block returns the next n words, n ≤ bufferBytes/8, until the next call.
func (in *input) block(n int) []byte {
	in.raw(n)
	_, _ = in.sum.Write(in.buffer) // it never fails
	return in.buffer
}

func (in *input) raw(n int) {
	if cap(in.buffer) < 8*n {
		in.buffer = make([]byte, 8*n)
	}
	in.buffer = in.buffer[:8*n]
	if in.err == nil {
		if _, err := io.ReadFull(in.from, in.buffer); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			in.err = errFormat("it is cut short")
		} else if err != nil {
			in.err = err
		}
	}
	if in.err != nil {
		clear(in.buffer)
	}
}

func (in *input) word() uint64 { return binary.LittleEndian.Uint64(in.block(1)) }

// end reads the checksum.
func (in *input) end() error {
	want := in.sum.Sum64()
	in.raw(1)
	if in.err == nil && binary.LittleEndian.Uint64(in.buffer) != want {
		in.err = errFormat("its checksum does not fit")
	}
	return in.err
}
