package peer

import (
	"io/fs"
	"path/filepath"
)

// storage is how many bytes of the disk the files in the node's folder take, and how
// many are free there. ok is false for a node without a folder, and where the numbers
// cannot be found. Files may come and go meanwhile.
func (n *Node) storage() (taken, free int64, ok bool) {
	if n.dir == "" {
		return 0, 0, false
	}
	err := filepath.WalkDir(n.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it has just been removed
		}
		if info, err := e.Info(); err == nil {
			taken += blocksOf(info)
		}
		return nil
	})
	if err == nil {
		free, err = freeBytes(n.dir)
	}
	return taken, free, err == nil
}
