package pgdb_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/pgserver"
)

// A schema that was restored from a dump has change logs with other ids: their numbers
// are given again. An opening, a vacuum that writes the tables anew and a lost session
// change none.
func TestDumpHasNewLogs(t *testing.T) {
	server := pgserver.Start(t)
	const schema = "dumped"
	logOf := func() dbadapter.LogID {
		t.Helper()
		s := open(t, server, pgdb.Options{Schema: schema})
		n, err := s.Namespace(t.Context(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := n.Log()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return id
	}
	tool := func(name string, args ...string) {
		t.Helper()
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", name, err)
		}
		if out, err := exec.CommandContext(t.Context(), found[len(found)-1], args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	sql := func(text string) {
		t.Helper()
		tool("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL(), "-c", text)
	}
	first := logOf()
	sql(`VACUUM (FULL, FREEZE) ` + schema + `.opened`)
	if again := logOf(); again != first {
		t.Errorf("opened again, the log has the id %s, not %s", again, first)
	}
	dump := filepath.Join(t.TempDir(), "dump.sql")
	tool("pg_dump", "-n", schema, "-f", dump, server.URL())
	if again := logOf(); again != first {
		t.Errorf("once it was dumped, the log has the id %s, not %s", again, first)
	}
	sql(`DROP SCHEMA ` + schema + ` CASCADE`)
	tool("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL(), "-f", dump)
	restored := logOf()
	if restored == first {
		t.Error("restored from a dump, the log has the id that it had")
	}
	if again := logOf(); again != restored {
		t.Errorf("opened again, the log has the id %s, not %s", again, restored)
	}
}
