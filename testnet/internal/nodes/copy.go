package nodes

import (
	"errors"
	"fmt"
	"maps"
	"os"
)

// copyTries bounds how often a copy is begun again because files appeared or went.
const copyTries = 10

// copyFiles copies a folder of plain files that a store has open, without writers.
// A compaction, which the store begins on its own, makes new files: if the list of
// files changes during the copy, copyFiles begins again.
func copyFiles(from, to string) error {
	for range copyTries {
		before, err := listing(from)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		failed := os.CopyFS(to, os.DirFS(from))
		after, err := listing(from)
		if err != nil {
			return errors.Join(err, failed)
		}
		if maps.Equal(before, after) {
			return failed
		}
	}
	return fmt.Errorf("the files in %s do not come to rest", from)
}

func listing(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		sizes[e.Name()] = info.Size()
	}
	return sizes, nil
}
