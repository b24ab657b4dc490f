package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failing notes a failure instead of passing it on.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = format
	panic(f)
}

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		"one\ntwo\n":        "",
		"one\nthree\n":      "differs first in line",
		"one\ntwo\nthree\n": "differs first in line",
		"one":               "more lines",
	} {
		f := &failing{TB: t}
		func() {
			defer func() { _ = recover() }()
			Compare(f, file, got)
		}()
		if (want == "") != (f.said == "") || !strings.Contains(f.said, want) {
			t.Errorf("%q: %q, want %q", got, f.said, want)
		}
	}
}
