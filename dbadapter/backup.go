package dbadapter

import (
	"context"
	"io"
)

// Backuper is a store that can be copied while it is written to. Not every
// store is one.
type Backuper interface {
	Store
	// Checkpoint holds on to the store as of one moment between two commits. In all
	// namespaces that are open, each batch is in it whole or not at all. It must be
	// closed. Commits do not wait for it.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// Settle notes durably that the copy with that mark is on another disk. The next
	// one then needs to hold only what has changed since. The copy must be durable by
	// then: else the next one could build on a copy that does not exist.
	Settle(ctx context.Context, mark []byte) error
}

// Checkpoint is a store as of one moment, to be copied.
type Checkpoint interface {
	// Copy writes the namespaces to w: what has changed since the copy with a mark, or
	// all there is. All there is goes if since is nil, is not the last copy of its line
	// that Settle has noted, or lies further back than the change log. What is copied
	// is verified on the way, so that damage makes an error and no faulty copy.
	Copy(ctx context.Context, w io.Writer, since []byte) (Copied, error)
	// Close releases the checkpoint. Idempotent.
	Close() error
}

// Copied says what a copy holds.
type Copied struct {
	// Mark names the copy, for the next one.
	Mark []byte
	// Whole: the copy needs no other one before it.
	Whole      bool
	Namespaces []CopiedNamespace
}

// CopiedNamespace says what a copy holds of a namespace.
type CopiedNamespace struct {
	ID      NamespaceID
	Records uint64 // that the namespace holds, tombstones included
	Seq     uint64 // of the last change that it holds
	Since   uint64 // the copy holds the changes after this one; 0: all records
}

// Lister is a store that tells which namespaces it holds. Not every store is one.
type Lister interface {
	Store
	// List returns the namespaces that the store holds, also those that are not open.
	List(ctx context.Context) ([]NamespaceID, error)
}

// Examiner is a store that can read its files through. Not every store is one.
type Examiner interface {
	Store
	// Examine reads all that the store keeps on the disk and checks it, as far as that
	// can be done without the records' keys. ErrCorrupt names what is damaged. Reads
	// and commits go on meanwhile.
	Examine(ctx context.Context) error
}
