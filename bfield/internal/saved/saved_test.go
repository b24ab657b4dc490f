package saved

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

var format = Format{Magic: "MAGIC\x01", Err: errors.New("no form")}

// sample is a saved form, and read reads it.
func sample() []byte {
	b := append([]byte(format.Magic), 7, 2, 1, 4, 3, 2, 1)
	return Sealed(Append(b, 8, 9, 10))
}

func read(data []byte) (*[]uint64, error) {
	in := format.Read(data)
	numbers := []uint64{uint64(in.Byte()), uint64(in.Uint16()), uint64(in.Uint32()), in.Word()}
	numbers = append(numbers, in.Words(in.Left()/8)...)
	return &numbers, in.End()
}

// What was appended is read; whatever is cut, added or changed is refused, and so are numbers
// behind the end.
func TestReader(t *testing.T) {
	data := sample()
	got, err := read(data)
	if err != nil || !slices.Equal(*got, []uint64{7, 0x102, 0x1020304, 8, 9, 10}) {
		t.Fatalf("%v, %v", got, err)
	}
	refused := func(what string, data []byte) {
		t.Helper()
		if _, err := read(data); !errors.Is(err, format.Err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	body := data[:len(data)-SumSize]
	for i := range data {
		refused("cut", data[:i])
		changed := bytes.Clone(data)
		changed[i] ^= 1
		refused("changed", changed)
		if i < len(body) && i != len(body)-8 && i != len(body)-16 {
			refused("cut and sealed", Sealed(bytes.Clone(body[:i])))
		}
	}
	refused("a byte more", Sealed(append(bytes.Clone(body), 0)))
	in := format.Read(data)
	if in.Words(1<<61+1) != nil || in.Bytes(1<<63) != nil || in.Word() != 0 || in.Err() == nil {
		t.Error("more is read than there is")
	}
	first := in.Err()
	if in.Errorf("more") != first || in.End() != first {
		t.Errorf("%v in place of the first error, %v", in.End(), first)
	}
	old := []uint64{1}
	if err := Unmarshal(&old, body, read); err == nil || !slices.Equal(old, []uint64{1}) {
		t.Errorf("after an error, %v: %v", err, old)
	}
}
