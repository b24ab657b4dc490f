package dbadapter

import "fmt"

// ErrNoRoom: the disk has no room for what was asked, and nothing was written. It is
// ErrLimit, too. NoRoom says how much is missing, where that is known.
var ErrNoRoom = fmt.Errorf("%w: the disk is nearly full", ErrLimit)

// Roomer is a Store that refuses writes while its disk is nearly full, or the system lets it
// make no files. Not every store is one.
type Roomer interface {
	Store
	// Room is nil while writes are taken, and else the *NoRoom with which they are refused, or
	// another error that names what the system refuses. It asks the system, which takes some
	// microseconds.
	Room() error
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
