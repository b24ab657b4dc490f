// Package kv is what a store on disk needs of a key-value database: an Engine
// opens it, and dbadapter/internal/kvstore makes a store of it. An engine turns
// damage to its files into errors that are dbadapter.ErrCorrupt, and never into an
// older value or one that is not there.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// Engine opens databases of one kind.
type Engine interface {
	// Name stands in the stamp of a folder.
	Name() string
	// Holds reports whether a folder holds a database of the engine.
	Holds(dir string) bool
	// Probe looks at the files of a folder, and changes none of what they say.
	// closed: the database was closed in order. through: tables are read through, where
	// the database would not tell what is damaged in them.
	Probe(dir string, closed, through bool) error
	// Open opens the database in a folder, and makes one in an empty folder.
	Open(dir string) (DB, error)
	// OpenReadOnly opens the database in a folder whose disk has no room for Open: it takes no
	// writes, and does no work in the background.
	OpenReadOnly(dir string) (DB, error)
	// NeedToOpen is how many bytes Open may write.
	NeedToOpen(dir string) int64
}

// DB is an open database: entries in the order of their keys.
type DB interface {
	// View opens the database as of the last commit.
	View() View
	// Begin begins a transaction, which is committed whole or not at all.
	Begin() Txn
	// DropPrefix removes all entries with a prefix. No view and no transaction is open.
	DropPrefix(prefix []byte) error
	// Size is that of all tables.
	Size() int64
	// Need is how many bytes the database may yet write by itself, beside what there is: to
	// bring what it has taken into tables, and to merge these. whole: to compact it, too.
	Need(whole bool) int64
	// Stale estimates how many of the bytes that the files take are of entries that were
	// overwritten or removed, and how many these are in all.
	Stale(ctx context.Context, c Commits) (stale, size int64, err error)
	// Compact merges the files, so that what was removed takes no room.
	Compact(ctx context.Context, c Commits) error
	// Examine reads all that was written and checks it. ErrCorrupt names the damaged
	// files. It may run beside everything but Close.
	Examine(ctx context.Context) error
	// Rest does what is to be done once the store is at rest, as giving back memory.
	Rest()
	// Close closes the database. All views are closed. ErrLeft: it was left as it is.
	Close() error
}

// ErrLeft: the disk has no room to close the database in order. Nothing is lost: the next
// opening does what was left, but this process cannot open it again.
var ErrLeft = fmt.Errorf("%w: it has no room to close the database in order, which is left as it is", dbadapter.ErrNoRoom)

// Reader reads the value under a key.
type Reader interface {
	// Get calls use with the value under a key, if there is one. The value is
	// valid during the call. Several goroutines may call it.
	Get(key []byte, use func(value []byte) error) (found bool, err error)
}

// View is a database as of one moment.
type View interface {
	Reader
	// Iterate makes an iterator over the entries with a prefix, which stands on
	// none of them until Seek.
	Iterate(prefix []byte) Iterator
	// Find makes a finder.
	Find() Finder
	// Close releases the view. Its iterators and finders are closed.
	Close()
}

// Finder reads the values under many keys in less time than the View, if they come in
// their order. One goroutine calls it.
type Finder interface {
	Reader
	Close()
}

// Iterator goes over entries in the order of their keys.
type Iterator interface {
	// Seek moves to the first entry whose key is not less.
	Seek(key []byte)
	Valid() bool
	Next()
	// Key is valid until the iterator moves.
	Key() []byte
	// Value calls use with the value, which is valid during the call.
	Value(use func(value []byte) error) error
	// Err says why the iterator is not valid, if not for having come to the end.
	Err() error
	Close()
}

// Txn is a set of writes that are committed together. The slices stay as they are
// until the commit.
type Txn interface {
	// Set and Delete fail with ErrTooBig where Commit would.
	Set(key, value []byte) error
	Delete(key []byte) error
	// Commit returns when the transaction is on the disk. After an error it is unknown
	// what the disk holds.
	Commit() error
	// Discard gives the transaction up, if it is not committed. Idempotent.
	Discard()
}

// What an engine takes. Badger writes longer values into files of their own, apart
// from the keys, and bounds a transaction by 15 % of its table in memory.
const (
	// MaxEntry bounds the length of a value.
	MaxEntry = 1 << 20
	// MaxTxn is what a transaction takes at least: keys, values, and EntryBytes for
	// each entry. More may be ErrTooBig.
	MaxTxn     = 4700 << 10
	EntryBytes = 12
)

// ErrTooBig: a transaction does not fit into one commit of the database.
var ErrTooBig = errors.New("too much for one commit")

// Commits is how a compaction writes and waits beside the commits of a store.
type Commits interface {
	// Pause lets a commit that runs end first; it is called between short pieces of
	// work.
	Pause(ctx context.Context)
	// Fill commits a value under the filler's key; nil removes it.
	Fill(ctx context.Context, value []byte) error
	// Between runs a function between two commits, of which the views that are
	// opened afterwards see what it did. The filler stands under the key given.
	Between(ctx context.Context, run func(filler []byte) error) error
}

// Get returns the value under a key, nil if there is no entry. It is the caller's.
func Get(r Reader, key []byte) (value []byte, err error) {
	found, err := r.Get(key, func(v []byte) error {
		value = bytes.Clone(v)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found && value == nil:
		return []byte{}, nil
	}
	return value, nil
}
