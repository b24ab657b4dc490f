package pair

import (
	"iter"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func list(records ...dbadapter.Record) iter.Seq2[dbadapter.Record, error] {
	return func(yield func(dbadapter.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestCompare: every way in which two sets can differ is seen.
func TestCompare(t *testing.T) {
	a := dbadapter.Record{Key: []byte("a"), Value: []byte("1"), Version: dbadapter.Version{Clock: 1}}
	b := dbadapter.Record{Key: []byte("b"), Value: []byte("1"), Version: dbadapter.Version{Clock: 1}}
	newer, other, deleted, fleeting, replacing := a, a, a, a, a
	newer.Version.Incarnation = 9
	other.Value = []byte("2")
	deleted.Deleted, deleted.Value = true, nil
	fleeting.Expires = 1
	replacing.Replaces = []dbadapter.Replaced{{Writer: 1}}
	for name, c := range map[string]struct {
		one, two iter.Seq2[dbadapter.Record, error]
		equal    bool
	}{
		"empty":         {list(), list(), true},
		"same":          {list(a, b), list(a, b), true},
		"more on one":   {list(a, b), list(a), false},
		"more on two":   {list(a), list(a, b), false},
		"other key":     {list(a), list(b), false},
		"other version": {list(a), list(newer), false},
		"other value":   {list(a), list(other), false},
		"deleted":       {list(a), list(deleted), false},
		"expires":       {list(a), list(fleeting), false},
		"replaces":      {list(a), list(replacing), false},
	} {
		got, err := compare(c.one, c.two)
		if err != nil || got.Equal != c.equal {
			t.Errorf("%s: %+v, %v; want equal %v", name, got, err, c.equal)
		}
	}
}

// TestPair: what is written on one side is on both after a sync.
func TestPair(t *testing.T) {
	p, err := Open(t.Context(), peer.Policy{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	source, err := NewSource(1, 16)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.NS[0].Import(t.Context(), source.Items(Keys("k", 10), nil)); err != nil {
		t.Fatal(err)
	}
	if c, err := p.Compare(t.Context()); err != nil || c.Equal || c.Records != 10 {
		t.Fatalf("before the sync: %+v, %v", c, err)
	}
	if r, err := p.Sync(t.Context(), peer.SyncOptions{}); err != nil || r.MissingHere != 10 {
		t.Fatalf("sync: %+v, %v", r, err)
	}
	if c, err := p.Compare(t.Context()); err != nil || !c.Equal {
		t.Fatalf("after the sync: %+v, %v", c, err)
	}
}
