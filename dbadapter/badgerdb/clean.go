package badgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
)

// The file CLEAN says that the store was closed in order, and how many
// transactions it then held. Badger cuts a damaged log short without a word,
// as it must after a power cut; where there was none, a smaller number than
// the one noted shows it. The file goes before anything else is written.
const cleanFile = "CLEAN"

func markClean(dir string, commits uint64) error {
	b := binary.BigEndian.AppendUint64(nil, commits)
	return writeDurably(filepath.Join(dir, cleanFile), appendSeal(b, 0, 0))
}

// checkClean compares the number of transactions with the one noted at a clean
// close, if there was one, and removes the note. A note that does not match
// stays, so that the store is refused the next time too.
func checkClean(dir string, commits uint64) error {
	path := filepath.Join(dir, cleanFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	body, err := unseal(b, 0, "the file "+cleanFile)
	if err != nil {
		return err
	}
	if len(body) != 8 {
		return corrupt("the file "+cleanFile, "it has %d bytes", len(b))
	}
	if noted := binary.BigEndian.Uint64(body); noted != commits {
		return fmt.Errorf("%w: it was closed in order with %d transactions, but now holds %d; restore the folder from a copy, or empty it and sync again from a peer",
			dbadapter.ErrCorrupt, noted, commits)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncDir(dir)
}
