package peer

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
)

// missing warns of files of a namespace that was open before.
func (n *Node) missing(f *folder.Namespace) {
	for _, name := range []string{folder.ListFile, folder.ProofsFile} {
		_, err := os.Stat(filepath.Join(f.Path, name))
		if errors.Is(err, fs.ErrNotExist) && len(f.State.Logs) > 0 && !f.State.Sharded() {
			n.log.Warn("a file is missing, and made anew", slog.String("ns", f.State.Name), slog.String("file", filepath.Join(f.Path, name)))
		}
	}
}

// setsInStore lists the sets of records in the store; none where it cannot tell.
func (n *Node) setsInStore(ctx context.Context) ([]dbadapter.NamespaceID, error) {
	if store, ok := n.store.(dbadapter.Lister); ok {
		return store.List(ctx)
	}
	return nil, nil
}

// shelveOrphans keeps the sets in the store that are of none of the namespaces. Nothing
// tells which ones are the list of members of another.
func (n *Node) shelveOrphans(ctx context.Context, folders []folder.Namespace) error {
	sets, err := n.setsInStore(ctx)
	own := map[dbadapter.NamespaceID]bool{}
	for _, f := range folders {
		if f.State == nil || f.Secret == (dbadapter.Secret{}) || f.State.Sharded() { // which sets are its own is not known
			return err
		}
		for _, keys := range f.Parts() {
			own[keys.ID] = true
		}
	}
	for _, id := range sets {
		if !own[id] {
			n.shelveLost(id, nil)
		}
	}
	return err
}

// shelveLost keeps a namespace whose records have no folder.
func (n *Node) shelveLost(id dbadapter.NamespaceID, s *node.State) {
	path := folder.Path(n.dir, id)
	err := durable.Damaged(path, "is missing, and the store has records of a namespace that has no folder: %s", folder.PutBack)
	n.shelve(id, folder.Namespace{Path: path, State: s}, err.Error(), err)
}
