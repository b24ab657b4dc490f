package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/multiformats/go-varint"
)

// lengths are what a peer that means harm writes where a length or a number
// is expected: 2^63 is too large for a number, 2^63 − 1 for any length.
var lengths = map[string][]byte{
	"2^63":     {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
	"2^64 - 1": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	"2^63 - 1": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
}

// Each number and length of each message is replaced by each of the vast ones.
// No such number of bytes is allocated; 2^63 − 1 stands where the number is a number
// of something that does not follow, and is refused everywhere else.
func TestVastLengths(t *testing.T) {
	zeros := make([]byte, 100)
	version := zeros[:8]
	for _, c := range []struct {
		name          string
		kind          Kind
		before, after []byte // of the field
		number        bool   // 2^63 − 1 is allowed
	}{
		{name: "prefix of a Hello", kind: KindHello, before: hello(), after: zeros},
		{name: "records of a Hello", kind: KindHello, before: hello(0), after: zeros[:32+GreetingSize+1], number: true},
		{name: "the estimator of a Hello", kind: KindHello, before: append(hello(0, 0), zeros[:32+GreetingSize]...)},
		{name: "records of a Welcome", kind: KindWelcome, before: zeros[:48], after: zeros[:32+GreetingSize], number: true},
		{name: "the estimator of Cells", kind: KindCells, after: zeros},
		{name: "cells of a More", kind: KindMore, number: true},
		{name: "an index", kind: KindIndices, before: []byte{1}},
		{name: "a second index", kind: KindIndices, before: []byte{1, 7}},
		{name: "key of an offer", kind: KindOffers, before: []byte{0, 0}, after: zeros},
		{name: "bytes of a Result", kind: KindResult, before: append([]byte{1}, zeros[:40]...), after: []byte{0}, number: true},
		{name: "estimate of a Result", kind: KindResult, before: append([]byte{1}, zeros[:41]...), number: true},
		{name: "key of a record", kind: KindRecords, before: []byte{0}, after: zeros},
		{name: "value of a record", kind: KindRecords, before: slices.Concat([]byte{0, 1, 'k'}, version), after: zeros},
		{name: "applied of an End", kind: KindEnd, after: []byte{0, 0}, number: true},
		{name: "held of an End", kind: KindEnd, before: []byte{0}, after: []byte{0}, number: true},
		{name: "collectable of an End", kind: KindEnd, before: []byte{0, 0}, number: true},
		{name: "index of a refusal", kind: KindEnd, before: []byte{0, 0, 0}, after: []byte{1, 2}},
		{name: "checksum of a refusal", kind: KindEnd, before: []byte{0, 0, 0, 1}, after: []byte{2}},
		{name: "statement of a Refuse", kind: KindRefuse, before: []byte{8, 1}, after: zeros},
	} {
		for name, length := range lengths {
			frame := slices.Concat([]byte{byte(c.kind)}, c.before, length, c.after)
			var m Message
			var err error
			n := allocated(func() { m, err = Parse(frame) })
			if n > 4<<10 {
				t.Errorf("%s is %s: %d bytes allocated", c.name, name, n)
			}
			if c.number && name == "2^63 - 1" {
				if err != nil {
					t.Errorf("%s is %s: %v", c.name, name, err)
				} else if again := Append(nil, m); !bytes.Equal(again[sizeOfLength(again):], frame) {
					t.Errorf("%s is %s: written as %x", c.name, name, again)
				}
				continue
			}
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%s is %s: %+v, %v", c.name, name, m, err)
			}
		}
	}
	for name, length := range lengths {
		if _, _, err := Read(bytes.NewReader(append(slices.Clone(length), zeros...))); !errors.Is(err, ErrFrame) {
			t.Errorf("a frame of %s bytes: %v", name, err)
		}
	}
}

// hello is the body of a Hello up to its prefix, and what follows.
func hello(after ...byte) []byte {
	b := append([]byte{Version, 1}, make([]byte, 16+16+32+1)...)
	return append(b, after...)
}

// allocated is how many bytes f takes: the least of a few calls, since the
// runtime itself allocates at times, and what it takes is counted, too.
func allocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// Each message of each kind, cut at each byte, with a length that is true of
// what is left: refused, or a shorter message that encodes alike. And whatever
// is left is said to be cut where the length is that of the whole.
func TestMessagesCutAtEachByte(t *testing.T) {
	for _, m := range samples() {
		whole := Append(nil, m)
		body := whole[sizeOfLength(whole):]
		for cut := range body {
			frame := append(varint.ToUvarint(uint64(cut)), body[:cut]...)
			short, n, err := Read(bytes.NewReader(frame))
			if h, ok := short.(*Hello); ok && h.Version != Version {
				continue // what follows another version has any form
			}
			switch {
			case err == nil && (n != len(frame) || !bytes.Equal(Append(nil, short), frame)):
				t.Errorf("%T cut to %d bytes: read as %+v", m, cut, short)
			case err != nil && !errors.Is(err, ErrFrame):
				t.Errorf("%T cut to %d bytes: %v", m, cut, err)
			}
		}
		for cut := 1; cut < len(whole); cut++ {
			if _, _, err := Read(bytes.NewReader(whole[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%T, of which %d bytes came: %v", m, cut, err)
			}
		}
	}
}
