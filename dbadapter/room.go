package dbadapter

import (
	"context"
	"fmt"
)

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
