package wire

import (
	"errors"
	"strings"
	"testing"
)

// A status with flags that are not known, or that announce what does not come, with a proof
// that names no member, or with too long a version, is refused.
func TestStatusesRefused(t *testing.T) {
	frame := func(a *StatusAnswer) []byte {
		b := Append(nil, &Reply{Subject: SubjectStatus, Answer: a})
		for b[0] >= 0x80 {
			b = b[1:]
		}
		return b[1:] // without its length
	}
	plain := frame(&StatusAnswer{})
	const damaged, unable = 1, 8
	const flags = 1 + 16 + 32 + GreetingSize + 1 // where they stand
	for n := range 256 {
		plain[flags] = byte(n)
		if _, err := Parse(plain); errors.Is(err, ErrFrame) != (n != 0 && n != damaged) {
			t.Errorf("flags %#x: %v", n, err)
		}
	}
	plain[flags] = unable
	for state, refused := range []bool{true, false, false} {
		if _, err := Parse(append(plain, byte(state))); errors.Is(err, ErrFrame) != refused {
			t.Errorf("state %d: %v", state, err)
		}
	}
	for name, a := range map[string]*StatusAnswer{
		"a proof with no member": {Proved: &Proved{At: 5}},
		"a long member":          {Proved: &Proved{With: make([]byte, MaxOrigin+1)}},
		"a long version":         {Program: strings.Repeat("v", MaxProgram+1)},
		"a garbled version":      {Program: "\xff"},
	} {
		if _, err := Parse(frame(a)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
