//go:build linux

package systemtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/pgserver"
)

// startPostgres starts a server. The flags are those of a daemon whose store it is, connection the
// file that they name.
func startPostgres(t *testing.T) (server *pgserver.Server, connection string, flags []string) {
	t.Helper()
	server = pgserver.Start(t)
	connection = filepath.Join(t.TempDir(), "connection")
	if err := os.WriteFile(connection, []byte(server.URL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return server, connection, []string{"--store", "postgres", "--postgres-file", connection}
}

// TestPostgres syncs a node on Badger with one on PostgreSQL, while both are written
// to, the latter is killed, and so is the server below it. Nothing acknowledged is
// lost, and both are equal in the end.
func TestPostgres(t *testing.T) {
	server, connection, flags := startPostgres(t)
	a := newDaemon(t, "a", t.TempDir())
	b := newDaemonEvery(t, "b", t.TempDir(), 0, flags...)
	join(a, b)

	refused := func(what, want string, arguments ...string) {
		t.Helper()
		out, err := exec.Command(binary, arguments...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	other := t.TempDir()
	initiate := append([]string{"--data-dir", other, "init"}, flags...)
	refused("a second process", "another process has it open", initiate...)

	wa, wb := newWriter(a), newWriter(b)
	wb.again = true
	stop := start(t, wa, wb)
	for round := range 3 {
		wa.batch(t, 500)
		wb.batch(t, 500)
		if report, err := a.sync(b); err != nil {
			t.Errorf("round %d: %v, %+v", round, err, report)
		}
		wb.wait(t, 20)
		ended := begin(a, b)
		if round%2 == 0 {
			b.kill()
			b.restart()
		} else {
			server.Crash()
			server.Run()
		}
		select {
		case err := <-ended: // it may have come first
			t.Logf("round %d: the sync ended with %v", round, err)
		case <-time.After(patience):
			t.Fatalf("round %d: the sync does not end", round)
		}
		wb.wait(t, 20)
	}
	stop()
	agreed(t, a, b, wa, wb)
	t.Logf("%d and %d writes were acknowledged", wa.total, wb.total)

	// The folder and the schema belong together.
	b.stop()
	refused("the folder with Badger", "it is a store over postgres", "--data-dir", b.dir, "init")
	refused("another folder with the schema", "use another schema", initiate...)
	refused("the folder with another schema", "connect to the right database", append([]string{"--data-dir", b.dir, "init", "--postgres-schema", "another"}, flags...)...)
	b.restart()
	agree(t, a, b)
	if err := os.Chmod(connection, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a connection string that all can read", "chmod 600", initiate...)
}
