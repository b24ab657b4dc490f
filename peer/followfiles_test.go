package peer

import (
	"os"
	"path/filepath"
	"testing"
)

// A node starts though a copy of what hosts tell cannot be read: it is fetched anew.
func TestNodeStartsWithUnreadableCopy(t *testing.T) {
	c := newWriterCluster(t, 3)
	c.must(c.nodes[2].Close(t.Context()))
	path := filepath.Join(namespaceDir(c.config[2].Dir, c.spaces[2].id), "directory-0003")
	c.must(os.RemoveAll(path))
	c.must(os.Mkdir(path, 0o700)) // it cannot be read as a file
	config := c.config[2]
	config.Registerer = nil
	n, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	c.must(n.Close(t.Context()))
}
