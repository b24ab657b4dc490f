package kvstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/internal/durable"
)

// The file CLEAN says that the store was closed in order, and how many
// transactions it then held. An engine cuts a damaged log short and reports
// nothing, as it must after a power cut; after an orderly close, a number smaller
// than the one noted shows the loss. The store removes the file before it writes
// anything else.
const cleanFile = "CLEAN"

// cleanNote is the content of the file.
type cleanNote struct {
	there   bool // false after a crash, and in a new store
	commits uint64
}

func markClean(dir string, commits uint64) error {
	b := binary.BigEndian.AppendUint64(nil, commits)
	return durable.WriteFile(filepath.Join(dir, cleanFile), layout.AppendSeal(b, 0, 0))
}

func readClean(dir string) (cleanNote, error) {
	b, err := os.ReadFile(filepath.Join(dir, cleanFile))
	if errors.Is(err, os.ErrNotExist) {
		return cleanNote{}, nil
	}
	if err != nil {
		return cleanNote{}, err
	}
	body, err := layout.Unseal(b, 0, "the file "+cleanFile)
	if err != nil {
		return cleanNote{}, err
	}
	if len(body) != 8 {
		return cleanNote{}, damage.Corrupt("the file "+cleanFile, "it has %d bytes", len(b))
	}
	return cleanNote{true, binary.BigEndian.Uint64(body)}, nil
}

// take removes the file.
func (c cleanNote) take(dir string) error {
	if !c.there {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, cleanFile)); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// putBack writes the file again after the store could not be opened, so that
// it is refused the next time too.
func (c cleanNote) putBack(dir string) error {
	if !c.there {
		return nil
	}
	return markClean(dir, c.commits)
}

// check compares the number of transactions with the one noted.
func (c cleanNote) check(commits uint64) error {
	if c.there && c.commits != commits {
		return fmt.Errorf("%w: it was closed in order with %d transactions, but now holds %d; restore the folder from a copy, or empty it and sync again from a peer",
			dbadapter.ErrCorrupt, c.commits, commits)
	}
	return nil
}
