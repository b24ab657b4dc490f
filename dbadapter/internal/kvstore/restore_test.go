package kvstore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// TestRestoreOfDamage flips a bit at random places of a copy, cuts it, and leaves
// one of a line out: restoring it, opening the store and scanning it fails.
func TestRestoreOfDamage(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 50)
	whole, copied := takeCopy(t, s, nil)
	if err := s.Settle(t.Context(), copied.Mark); err != nil {
		t.Fatal(err)
	}
	fillTest(t, n, 60)
	second, copied := takeCopy(t, s, copied.Mark)
	if err := s.Settle(t.Context(), copied.Mark); err != nil || copied.Whole {
		t.Fatal(err, copied.Whole)
	}
	fillTest(t, n, 70)
	third, _ := takeCopy(t, s, copied.Mark)
	try := func(copies ...[]byte) error {
		dir := filepath.Join(t.TempDir(), "restored")
		if err := Restore(t.Context(), dir, engine, Options{}, readers(copies...)); err != nil {
			return err
		}
		o, err := openEngine(dir, Options{})
		if err != nil {
			return err
		}
		defer o.Close()
		other, err := o.Namespace(t.Context(), n.ID, n.Hasher, nil)
		if err != nil {
			return err
		}
		if other.Log() == n.Log() || other.Log() == 0 {
			t.Errorf("the log of what was restored has the id %s, and had %s", other.Log(), n.Log())
		}
		snap, err := other.Snapshot()
		if err != nil {
			return err
		}
		defer snap.Close()
		for _, err := range snap.Scan(t.Context(), nil, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := try(whole, second, third); err != nil {
		t.Fatal(err)
	}
	for what, copies := range map[string][][]byte{
		"no copy":         {},
		"no whole one":    {second},
		"one is left out": {whole, third},
		"two ways":        {whole, third, second},
	} {
		if err := try(copies...); err == nil {
			t.Errorf("%s: restored", what)
		}
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		at := rng.IntN(len(whole))
		if err := try(whole[:at]); !errors.Is(err, dbadapter.ErrCorrupt) && !errors.Is(err, dbadapter.ErrFormat) {
			t.Errorf("seed %d: cut at %d: %v", seed, at, err)
		}
	}
	if err := Restore(t.Context(), s.dir, engine, Options{}, readers(whole)); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("into a folder that is in use: %v", err)
	}
}

// TestLinesOfCopies: the store notes the last copy of a bounded number of lines,
// and goes on with the newest.
func TestLinesOfCopies(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 10)
	var marks [][]byte
	for range maxLines + 3 {
		_, copied := takeCopy(t, s, nil)
		if err := s.Settle(t.Context(), copied.Mark); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, copied.Mark)
	}
	for i, mark := range marks {
		if _, copied := takeCopy(t, s, mark); copied.Whole != (i < 3) {
			t.Errorf("line %d: whole %v", i, copied.Whole)
		}
	}
}

func FuzzRestore(f *testing.F) {
	dir := f.TempDir()
	s, err := openEngine(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	n := must(s.Namespace(f.Context(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{1}), nil))
	fillTest(f, n, 3)
	b, copied := takeCopy(f, s, nil)
	f.Add(b)
	if err := s.Settle(f.Context(), copied.Mark); err != nil {
		f.Fatal(err)
	}
	fillTest(f, n, 5)
	b, _ = takeCopy(f, s, copied.Mark)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := newCopyReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		for {
			if frame, err := in.next(); err != nil || frame.kind == frameEnd {
				return
			}
		}
	})
}
