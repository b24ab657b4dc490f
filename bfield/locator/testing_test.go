package locator

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func newTest(t testing.TB, c Config) *Locator {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// twin is what a Locator must know, plainly.
type twin map[uint64]Shard

func (w twin) feed(yield func(uint64, Shard) bool) error {
	for hash, s := range w {
		if !yield(hash, s) {
			return nil
		}
	}
	return nil
}

// compare holds every key of the twin to the Locator's answers.
func (w twin) compare(l *Locator) error {
	for hash, want := range w {
		s, answer := l.Lookup(hash)
		switch answer {
		case Exact, Likely:
			if s != want {
				return fmt.Errorf("key %x is in %d and answered %d, %v", hash, want, s, answer)
			}
		case OneOf:
			if c := l.Candidates(hash); !slices.Contains(c, want) {
				return fmt.Errorf("key %x is in %d and may be in %v", hash, want, c)
			}
		default:
			return fmt.Errorf("key %x is in %d and answered %v", hash, want, answer)
		}
	}
	return nil
}

// saved is the Locator written and opened again.
func saved(t testing.TB, l *Locator) *Locator {
	t.Helper()
	again, err := Open(written(t, l), 1)
	must(t, err)
	return again
}

func written(t testing.TB, l *Locator) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := l.WriteTo(&b)
	must(t, err)
	if n != int64(b.Len()) {
		t.Fatalf("%d bytes were written, %d told", b.Len(), n)
	}
	return b.Bytes()
}
