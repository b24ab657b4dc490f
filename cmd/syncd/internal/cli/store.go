package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

// storeFlags say where a node keeps its records.
type storeFlags struct {
	Store          string `help:"Where the records are kept: badger or pebble, in the data directory, or postgres. Pebble takes less memory and less time to write. Default: what the data directory has already; badger in a new one." enum:"badger,pebble,postgres," default:"" placeholder:"KIND" setting:""`
	PostgresFile   string `help:"File with the connection string of the database, readable by its owner only; without it, the environment says what libpq reads there (PGHOST, PGUSER, PGPASSFILE ...)." placeholder:"FILE" type:"path" setting:""`
	PostgresSchema string `help:"Schema of the database that holds the records of this node, and of no other." default:"syncd" setting:""`
}

// storeDir is the folder within the data directory that stands for the store.
const storeDir = "store"

// kind is the kind of a store in the data directory; "" where it is the one that is
// there, or none.
func (f storeFlags) kind() ondisk.Kind {
	if f.Store == pgdb.Name {
		return ""
	}
	return ondisk.Kind(f.Store)
}

// open opens the store; nil stands for the one that a node opens by itself. The
// caller closes it when the node is closed.
func (f storeFlags) open(ctx context.Context, a *app, log *slog.Logger, watchLog int) (dbadapter.Store, error) {
	if f.Store != pgdb.Name {
		return nil, nil
	}
	held, err := offline.StoreKind(a.DataDir)
	if err != nil && !errors.Is(err, peer.ErrCorrupt) { // damage to a stamp of its own the store tells
		return nil, err
	}
	if held != "" && held != pgdb.Name {
		return nil, problem.Usage("%s keeps its records in %s, and the setting store says postgres: leave the setting out, or export the records and import them into a new data directory", a.DataDir, held)
	}
	connection := ""
	if f.PostgresFile != "" {
		if connection, err = readSecret(f.PostgresFile); err != nil {
			return nil, fmt.Errorf("read the connection string: %w", err)
		}
	}
	store, err := pgdb.Open(ctx, connection, pgdb.Options{
		Schema: f.PostgresSchema, Folder: filepath.Join(a.DataDir, storeDir), Logger: log, LogLimit: watchLog,
	})
	if errors.Is(err, peer.ErrLocked) {
		return nil, err // which says what to do
	}
	if err != nil {
		return nil, fmt.Errorf("%w (--store postgres)", err)
	}
	return store, nil
}

// closeStore closes a store, if there is one, and adds its error to another.
func closeStore(store dbadapter.Store, err *error) {
	if store != nil {
		*err = errors.Join(*err, store.Close())
	}
}

// readSecret reads a file that only its owner can read.
func readSecret(path string) (string, error) {
	b, err := durable.ReadPrivate(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}
