package dbadapter

import (
	"context"
	"errors"
	"fmt"
)

// Errors that callers branch on, with errors.Is.
var (
	// ErrNotFound: no record has this key.
	ErrNotFound = errors.New("not found")
	// ErrDeleted: the key holds a tombstone.
	ErrDeleted = errors.New("deleted")
	// ErrExpired: the key holds a record that has expired.
	ErrExpired = errors.New("expired")
	// ErrLimit: the input is larger than the store takes.
	ErrLimit = errors.New("over a limit")
	// ErrCorrupt: what was read is not what was written. Keep a copy of the store, then
	// make it anew (ondisk.Rescue), or restore it from another copy.
	ErrCorrupt = errors.New("the stored data is damaged")
	// ErrConflict: a conditional write met another version.
	ErrConflict = errors.New("the version has changed")
	// ErrLocked: the store, or the namespace, is open already, in this process
	// or another.
	ErrLocked = errors.New("it is in use already")
	// ErrFormat: the store was written by a program of another disk format.
	ErrFormat = errors.New("the store has another disk format")
	// ErrTrimmed: the change log no longer reaches back that far.
	ErrTrimmed = errors.New("the change log no longer reaches back that far")
	// ErrAway: the database cannot be reached, and nothing was written; try again.
	ErrAway = errors.New("the database cannot be reached")
	// ErrClosed: the store, namespace or snapshot has been closed.
	ErrClosed = errors.New("closed")
)

// ConflictError is ErrConflict of a write that has found another version than that of its condition.
type ConflictError struct {
	// Held is that version; zero: the key holds nothing.
	Held Version
	// Free: the condition was that the key holds nothing.
	Free bool
}

func (e *ConflictError) Error() string {
	if e.Free {
		return fmt.Sprintf("%v: the key was to hold no record, and holds version %s; read it and decide anew", ErrConflict, e.Held)
	}
	now := fmt.Sprintf("it is %s now", e.Held)
	if e.Held.IsZero() {
		now = "there is no record now"
	}
	return fmt.Sprintf("%v since it was read; read the record again and decide anew; %s", ErrConflict, now)
}

// Unwrap makes it ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// ErrNoRoom: the disk has no room for what was asked, and nothing was written. It is
// ErrLimit, too. NoRoom says how much is missing, where that is known.
var ErrNoRoom = fmt.Errorf("%w: the disk is nearly full", ErrLimit)

// Able is a Store that can say whether it works now. Not every store is one.
type Able interface {
	Store
	// Able is nil while the store reads and takes writes, as far as it can tell without
	// either. Else it says why not, as a write would: ErrNoRoom where its disk is nearly full or
	// may only be read, ErrAway where its database is away, or what the system refuses. It is
	// asked every few seconds, also while writes wait.
	Able(ctx context.Context) error
}

// NoRoom is an ErrNoRoom that counts bytes.
type NoRoom struct {
	Dir        string
	Free, Need int64
}

func (n *NoRoom) Error() string {
	return fmt.Sprintf("%v: %s has %d bytes free, and needs %d: make room for %d MiB more", ErrNoRoom, n.Dir, n.Free, n.Need, (n.Need-n.Free)>>20+1)
}

// Unwrap makes it an ErrNoRoom.
func (n *NoRoom) Unwrap() error { return ErrNoRoom }
