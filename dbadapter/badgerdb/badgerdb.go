package badgerdb

import (
	"context"
	"io"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
)

// Format is the number of the disk format that this program reads and writes.
const Format = kvstore.Format

// Open opens the store in a folder, and makes a new one in an empty folder.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was
// written by a program of another disk format, over another engine, or by another
// program altogether. ErrCorrupt: its files are damaged.
func Open(dir string, o Options) (dbadapter.Backuper, error) {
	s, err := kvstore.Open(dir, o.engine(), o.store())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Restore makes a store in a folder that is empty, or not there, of copies that
// Checkpoint.Copy of this store, or of another one on disk, wrote. They are a whole one
// and those that follow it, oldest first. Each is read to its end before the next one
// is asked for. The records are verified when the store is opened and scanned; a copy's
// framing is verified here. After an error the folder holds a part of a store, and is
// of no use.
func Restore(ctx context.Context, dir string, o Options, copies iter.Seq2[io.Reader, error]) error {
	return kvstore.Restore(ctx, dir, o.engine(), o.store(), copies)
}
