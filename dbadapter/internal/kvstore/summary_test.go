package kvstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// A summary of which a part, or the head, is damaged, lost or another one's is
// ErrCorrupt, also after a restart, and the next one takes its place. What a save that
// was cut short has left behind is removed.
func TestDamagedSummary(t *testing.T) {
	summary := bytes.Repeat([]byte("summary"), 100_000) // three parts
	for name, damage := range map[string]func(txn edits, n *namespace) error{
		"a bit of a part": func(txn edits, n *namespace) error {
			return flipAt(txn, partKey(n.Number, 1, 1), 1000)
		},
		"a bit of the head": func(txn edits, n *namespace) error { return flipAt(txn, keepsKey(n.Number), 3) },
		"a lost part":       func(txn edits, n *namespace) error { return txn.Delete(partKey(n.Number, 1, 2)) },
		"a part in another's place": func(txn edits, n *namespace) error {
			b, err := kv.Get(txn, partKey(n.Number, 1, 0))
			return errors.Join(err, txn.Set(partKey(n.Number, 1, 1), b))
		},
		"a short part": func(txn edits, n *namespace) error {
			return txn.Set(partKey(n.Number, 1, 2), layout.AppendSeal(nil, 0, partSeed(n.Number, 1, 2)))
		},
	} {
		dir := t.TempDir()
		s, n := openTest(t, dir, Options{}, nil)
		fillTest(t, n, 10)
		if err := n.SaveSummary(t.Context(), 10, summary); err != nil {
			t.Fatal(err)
		}
		if err := update(s, func(txn edits) error { return damage(txn, n) }); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, n = openTest(t, dir, Options{}, nil)
		if _, _, err := n.Summary(t.Context()); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		// A save that a crash has cut short.
		if err := n.writePart(n.summary.generation+1, 7, []byte("left behind")); err != nil {
			t.Fatal(err)
		}
		if err := n.SaveSummary(t.Context(), 9, summary[1:]); err != nil {
			t.Fatal(err)
		}
		seq, got, err := n.Summary(t.Context())
		if err != nil || seq != 9 || !bytes.Equal(got, summary[1:]) {
			t.Errorf("%s: the next summary is %d bytes up to %d, %v", name, len(got), seq, err)
		}
		if keys, err := s.keys(appendPrefix(nil, n.Number, kindPart), nil, 100); err != nil || len(keys) != 3 {
			t.Errorf("%s: %d parts are left, %v, want 3", name, len(keys), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// flipAt turns a bit of an entry.
func flipAt(txn edits, key []byte, at int) error {
	b, err := kv.Get(txn, key)
	if err != nil {
		return err
	}
	b[at] ^= 4
	return txn.Set(key, b)
}

// A save that is cut short after any of its steps leaves the summary before, or is
// whole.
func TestSummaryCutShort(t *testing.T) {
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	fillTest(t, n, 10)
	before, after := bytes.Repeat([]byte("a"), 600_000), bytes.Repeat([]byte("b"), 700_000)
	if err := n.SaveSummary(t.Context(), 5, before); err != nil {
		t.Fatal(err)
	}
	for steps := range 4 { // parts that are written before the crash
		generation := n.summary.generation + 1
		for part := range steps {
			if err := n.writePart(generation, uint32(part), after[:1000]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, n = openTest(t, dir, Options{}, nil)
		if seq, got, err := n.Summary(t.Context()); err != nil || seq != 5 || !bytes.Equal(got, before) {
			t.Fatalf("after %d parts: %d bytes up to %d, %v", steps, len(got), seq, err)
		}
	}
	if err := n.SaveSummary(t.Context(), 6, after); err != nil {
		t.Fatal(err)
	}
	if seq, got, err := n.Summary(t.Context()); err != nil || seq != 6 || !bytes.Equal(got, after) {
		t.Errorf("then: %d bytes up to %d, %v", len(got), seq, err)
	}
}
