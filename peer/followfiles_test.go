package peer

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/internal/placement"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/directory"
)

// A node starts though a copy of what hosts tell cannot be read: it is fetched anew.
func TestNodeStartsWithUnreadableCopy(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
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

// A backup leaves out the locator's copies, as hosts tell them anew; one of before, which has
// it, is verified and restored as it was.
func TestBackupLeavesOutTheLocator(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	c.must(c.spaces[0].follows.locator.Save())
	copiesIn := func(dir string) (n int) {
		c.must(filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && directory.IsCopy(d.Name()) {
				n++
			}
			return err
		}))
		return n
	}
	if copiesIn(c.config[0].Dir) == 0 {
		t.Fatal("the node has no copies")
	}
	// The first generation is one of before.
	dir, n := t.TempDir(), c.nodes[0]
	folder, err := backup.Create(dir, n.ID().String())
	c.must(err)
	draft, err := folder.Begin()
	c.must(err)
	files, err := filepath.Glob(filepath.Join(namespaceDir(n.dir, c.spaces[0].id), "directory-*"))
	c.must(err)
	for _, path := range files {
		name, err := filepath.Rel(n.dir, path)
		c.must(err)
		data, err := os.ReadFile(path)
		c.must(err)
		c.must(draft.Write(backup.NodeDir+"/"+filepath.ToSlash(name), data))
	}
	m := &backup.Manifest{}
	_, err = n.fill(t.Context(), draft, m, n.store.(dbadapter.Backuper), nil, nil)
	c.must(err)
	c.must(draft.Commit(m))
	_, err = n.Backup(t.Context(), dir, BackupOptions{})
	c.must(err)
	for generation, want := range map[int]int{1: len(files), 2: 0} {
		to := filepath.Join(t.TempDir(), "restored")
		_, err := Restore(t.Context(), dir, to, RestoreOptions{Generation: generation}) // verifies it, and opens what it restores
		c.must(err)
		if n := copiesIn(to); n != want {
			t.Errorf("generation %d has %d copies, of %d", generation, n, len(files))
		}
	}
}
