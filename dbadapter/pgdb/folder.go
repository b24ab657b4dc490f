package pgdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/internal/durable"
)

// Name stands in the stamp of a folder, where stores on disk have theirs.
const Name = "postgres"

// A folder stands for the store where the node keeps what is not in it. It holds the
// stamp that stores on disk have, so that such a store does not begin anew there. It
// holds the schema's own id, too. A node that finds other records than it left, or no
// records at all, would make versions that it has made before.
const (
	stampFile  = "FORMAT"
	schemaFile = "SCHEMA"
)

// bind ties the folder to the schema, or checks that it is. used: namespaces were made
// in the schema.
func bind(dir, id string, used bool) error {
	engine, err := kvstore.EngineOf(dir)
	switch {
	case errors.Is(err, dbadapter.ErrCorrupt):
		return fmt.Errorf("open the folder %s: %w; if its records are in PostgreSQL, remove the file: it is written anew", dir, err)
	case err != nil:
		return fmt.Errorf("read the stamp of %s: %w", dir, err)
	case engine != "" && engine != Name:
		return fmt.Errorf("%w: in %s is a store over %s, which holds the node's records: open that one, or move them to a store over %s first", dbadapter.ErrFormat, dir, engine, Name)
	}
	path := filepath.Join(dir, schemaFile)
	b, err := os.ReadFile(path)
	switch found := strings.TrimSpace(string(b)); {
	case errors.Is(err, fs.ErrNotExist) && (used || engine == Name):
		return fmt.Errorf("%w: nothing in %s says that its records are in this schema, which is in use: use another schema; if they are there, write %s into %s", dbadapter.ErrFormat, dir, id, path)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case found != id:
		return fmt.Errorf("%w: the records of %s are in the schema with the id %s, and this one has the id %s: connect to the right database and schema", dbadapter.ErrFormat, dir, found, id)
	}
	if engine == Name {
		return nil
	}
	if err := os.MkdirAll(dir, durable.DirMode); err != nil {
		return err
	}
	if err := durable.WriteFile(path, []byte(id+"\n")); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, stampFile), kvstore.Stamp(Name, format))
}
