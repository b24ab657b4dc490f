//go:build linux

package systemtest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDumpBesideFolder restores the schema of a node from a dump, beside its folder, which is
// newer and says what the node has told members that it holds. The node recovers: it
// takes back what it had written since, and collects nothing before that.
func TestDumpBesideFolder(t *testing.T) {
	server, _, flags := startPostgres(t)
	tool := func(name string, arguments ...string) {
		t.Helper()
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", name, err)
		}
		if out, err := exec.CommandContext(t.Context(), found[len(found)-1], arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	a := newDaemonEvery(t, "a", t.TempDir(), 0)
	b := newDaemonEvery(t, "b", t.TempDir(), 0, flags...)
	join(a, b)
	b.command(nil, "put", namespace, "earlier", "value")
	a.syncNow(b)
	b.stop()
	dump := filepath.Join(t.TempDir(), "dump.sql")
	tool("pg_dump", "-n", "syncd", "-f", dump, server.URL())
	b.restart()
	if b.collection().Recovering {
		t.Error("it recovers once it was dumped")
	}
	b.command(nil, "put", namespace, "later", "value")
	a.syncNow(b)
	b.stop()
	tool("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL(), "-c", "DROP SCHEMA syncd CASCADE")
	tool("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL(), "-f", dump)
	b.restart()
	if !b.collection().Recovering {
		t.Error("restored from a dump, it does not recover")
	}
	if got := b.held(); got != 1 {
		t.Errorf("it holds %d records, want that of the dump", got)
	}
	a.syncNow(b)
	agree(t, a, b)
	if got := b.held(); got != 2 || b.collection().Recovering {
		t.Errorf("after a sync it holds %d records, and recovers: %v", got, b.collection().Recovering)
	}
}
