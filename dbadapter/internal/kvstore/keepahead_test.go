package kvstore

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// losing are writes of a second writer over large records of a first one.
func losing(t *testing.T, n *namespace) []dbadapter.Write {
	t.Helper()
	var over []dbadapter.Write
	for i := range 3 {
		w := write(fmt.Sprint(i), 1)
		w[0].Record.Value = bytes.Repeat([]byte{byte(i)}, dbadapter.MaxValue)
		w[0].Record = hashed(n.Hasher, w[0].Record.Record)
		apply(t, n, w)
		r := w[0].Record.Record
		r.Value, r.Version.Writer = nil, 2
		over = append(over, dbadapter.Write{Record: hashed(n.Hasher, r)})
	}
	return over
}

// writeAhead writes the entries of a batch ahead of a commit that does not follow.
func writeAhead(t *testing.T, s *Store, n *namespace, writes []dbadapter.Write) {
	t.Helper()
	items, err := commit.Prepare(writes)
	if err != nil {
		t.Fatal(err)
	}
	err = s.committer.do(t.Context(), func() error {
		view := s.lastCommit()
		defer view.release()
		g := n.newGroup(view, nil)
		_, err := g.Batch(items)
		return errors.Join(err, s.committer.keepAhead(&part{Namespace: n, Group: g}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if n.Meta.Own == 0 || n.Meta.Kept.Conflicts != 3 {
		t.Fatalf("nothing was written ahead: %+v", n.Meta.Kept)
	}
}

func keptOf(t *testing.T, n *namespace) (seqs []uint64) {
	t.Helper()
	for k, err := range n.Kept(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, k.Seq)
	}
	if got := n.KeptCount(dbadapter.KeptConflict); got != len(seqs) {
		t.Errorf("%d entries are counted, %d are there", got, len(seqs))
	}
	return seqs
}

// TestKeptAheadOfNoCommit crashes, or fails, between the entries and their commit:
// no entry counts.
func TestKeptAheadOfNoCommit(t *testing.T) {
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	over := losing(t, n)
	writeAhead(t, s, n, over)
	if seqs := keptOf(t, n); len(seqs) != 0 {
		t.Errorf("readers see entries %v", seqs)
	}
	s.Close()
	s, n = openTest(t, dir, Options{}, nil)
	if seqs := keptOf(t, n); len(seqs) != 0 {
		t.Errorf("opened again, it has entries %v", seqs)
	}
	writeAhead(t, s, n, over)
	apply(t, n, write("other", 1))
	if seqs := keptOf(t, n); len(seqs) != 0 {
		t.Errorf("after another commit, it has entries %v", seqs)
	}
	writeAhead(t, s, n, over)
	apply(t, n, over)
	if seqs := keptOf(t, n); fmt.Sprint(seqs) != "[1 2 3]" {
		t.Errorf("after their commit, it has entries %v", seqs)
	}
}

// TestKeptAheadIsSeenByNoReader fails between the entries and their commit, and goes on with
// commits that let the entries be seen: of another namespace, of the head alone, of
// what is forgotten. No reader takes them for damage, or counts them.
func TestKeptAheadIsSeenByNoReader(t *testing.T) {
	armed := false
	s, n := openHooked(t, &hooks{set: func(key []byte) error {
		if armed && key[prefixSize-1] == kindRecord {
			return kv.ErrTooBig
		}
		return nil
	}})
	other := must(s.Namespace(t.Context(), dbadapter.NamespaceID{2}, n.Hasher, nil))
	over := losing(t, n)
	for name, commit := range map[string]func() error{
		"of another namespace": func() error { _, err := other.Apply(t.Context(), write("k", 1)); return err },
		"of the head":          func() error { return n.Raise(t.Context(), n.Ceiling()+1) },
		"of what is forgotten": func() error { return n.Forget(t.Context(), 1, 2, 3) },
		"of a summary":         func() error { return n.SaveSummary(t.Context(), n.Meta.Seq, []byte("s")) },
	} {
		armed = true
		if _, err := n.Apply(t.Context(), over); !errors.Is(err, dbadapter.ErrLimit) {
			t.Fatalf("a commit %s: %v", name, err)
		}
		armed = false
		if err := commit(); err != nil {
			t.Fatalf("a commit %s: %v", name, err)
		}
		if seqs := keptOf(t, n); len(seqs) != 0 {
			t.Errorf("after a commit %s, readers see entries %v", name, seqs)
		}
		takeCopy(t, s, nil)
	}
	apply(t, n, over)
	if seqs := keptOf(t, n); fmt.Sprint(seqs) != "[1 2 3]" {
		t.Errorf("after their commit, it has entries %v", seqs)
	}
}
