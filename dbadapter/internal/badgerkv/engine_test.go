package badgerkv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Badger empties a log before it deletes it, and makes a new one empty. A process that is
// killed in between leaves empty logs behind: they hold nothing, and hinder nothing.
func TestEmptyLogsOpen(t *testing.T) {
	dir := t.TempDir()
	s, _, n := openStore(t, dir)
	for i := range 3 {
		if _, err := n.Apply(t.Context(), []dbadapter.Write{write(dbadapter.NewHasher(dbadapter.Secret{1}), fmt.Sprint("key ", i), nil)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00000.mem", "00001.mem", "99999.mem"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, n = openStore(t, dir)
	if got := countOf(t, n); got != 3 {
		t.Errorf("%d records are left of 3", got)
	}
	if _, err := n.Apply(t.Context(), []dbadapter.Write{write(dbadapter.NewHasher(dbadapter.Secret{1}), "key 3", nil)}); err != nil {
		t.Error(err)
	}
	if got := countOf(t, n); got != 4 {
		t.Errorf("%d records are held after one more", got)
	}
}

func countOf(t *testing.T, n dbadapter.Namespace) (count int) {
	t.Helper()
	v, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, err := range v.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	return count
}
