package cli

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"512MiB": 512 << 20, "512MB": 512 << 20, "512 M": 512 << 20, "2GiB": 2 << 30, "1K": 1 << 10, "3TiB": 3 << 40, "268435456": 256 << 20, "0": 0,
	} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, %v", text, b, err)
		}
		var again byteSize
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%q is written %q, and read as %d, %v", text, b, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1XiB", "1GiBiB", "9999999999GiB", "99999999999999999999"} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, b)
		}
	}
	if err := byteSize(1).check("memory"); !errors.Is(err, problem.ErrUsage) {
		t.Errorf("one byte: %v", err)
	}
}

func TestIdleness(t *testing.T) {
	var i idleness
	for at, c := range []struct {
		allocated uint64
		begins    bool
	}{
		{20 << 20, false},  // a start
		{25 << 20, false},  // has made little garbage
		{500 << 20, false}, // busy
		{505 << 20, true},
		{506 << 20, false}, // given back
		{570 << 20, false},
		{571 << 20, true},
	} {
		if got := i.begins(c.allocated); got != c.begins {
			t.Errorf("look %d, at %d bytes: %v", at, c.allocated, got)
		}
	}
}
