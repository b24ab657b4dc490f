package kvstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Moved says what a migration has copied.
type Moved struct {
	Entries uint64
	Bytes   int64 // of keys and values
	Digest  [sha256.Size]byte
}

// loadPieces is how many entries are copied between two looks at the context.
const loadPieces = 4096

// CopyTo makes a store of another engine in a folder that is empty, or not there. It
// copies all entries as they are, as of one moment between two commits, so that
// nothing is made anew: the numbers of changes, of kept entries and of namespaces, the
// ceilings, the logs, the summaries and the notes of backups go on. The copy is
// complete and durable when CopyTo returns: it has been closed, opened anew and read,
// and the digests of all entries are the same. After an error the folder is of no use.
//
// progress, if not nil, is told how many bytes of entries have been read, here and from
// the copy.
func (s *Store) CopyTo(ctx context.Context, dir string, engine kv.Engine, o Options, progress func(int64)) (m Moved, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the store %s to %s: %w", s.dir, dir, err)
		}
	}()
	if progress == nil {
		progress = func(int64) {}
	}
	var view kv.View
	var h head
	if err := s.committer.do(ctx, func() error { view, h = s.db.View(), s.committer.head; return nil }); err != nil {
		return m, err
	}
	defer view.Close()
	if m, err = load(ctx, view, dir, engine, o, h, progress); err != nil {
		return m, err
	}
	found, err := readBack(ctx, dir, engine, func(n int64) { progress(m.Bytes + n) })
	if err == nil && found != m {
		err = damage.Corrupt("the copy", "it has %d entries of %d bytes, digest %x; %d of %d, digest %x, were written",
			found.Entries, found.Bytes, found.Digest[:8], m.Entries, m.Bytes, m.Digest[:8])
	}
	return m, err
}

// load writes all entries of a view into a new folder.
func load(ctx context.Context, view kv.View, dir string, engine kv.Engine, o Options, h head, progress func(int64)) (m Moved, err error) {
	db, disk, release, err := openNew(dir, engine, &o)
	if err != nil {
		return m, err
	}
	defer release()
	defer func() {
		if err = errors.Join(err, db.Close()); err == nil {
			err = markClean(dir, h.commits)
		}
	}()
	out := disk.load(db)
	defer out.Cancel()
	m, err = eachEntry(ctx, view, progress, out.Set)
	if err == nil {
		err = out.Flush()
	}
	return m, err
}

// readBack reads all entries of what load has written. No store is opened, since it
// would begin to erase what was dropped.
func readBack(ctx context.Context, dir string, engine kv.Engine, progress func(int64)) (m Moved, err error) {
	if err := engine.Probe(dir, true, true); err != nil {
		return m, err
	}
	db, err := engine.Open(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	view := db.View()
	defer view.Close()
	return eachEntry(ctx, view, progress, func(_, _ []byte) error { return nil })
}

// eachEntry calls do with the key and the value of each entry; the slices are the callee's.
func eachEntry(ctx context.Context, view kv.View, progress func(int64), do func(key, value []byte) error) (m Moved, err error) {
	sum := sha256.New()
	unread, err := readEntries(view, nil, nil, func(key, value []byte) error {
		if m.Entries%loadPieces == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(m.Bytes)
		}
		writeSized(sum, key)
		writeSized(sum, value)
		m.Entries++
		m.Bytes += int64(len(key) + len(value))
		return do(key, value)
	})
	copy(m.Digest[:], sum.Sum(nil))
	progress(m.Bytes)
	return m, cmp.Or(err, unread)
}

func writeSized(sum hash.Hash, b []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(b)))
	sum.Write(size[:]) // never fails (hash.Hash)
	sum.Write(b)
}
