package syncing

import (
	"context"
	"errors"
)

// ErrRejected: the sync ran to its end, and one side declined records of the other.
var ErrRejected = errors.New("records were declined")

// ErrSkipped: a part of a turn is not open. That says nothing of the peer.
var ErrSkipped = errors.New("what is to be synced is not open")

// Failed reports whether a sync has not run to its end. One in which records were declined
// has: all others have travelled.
func Failed(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrRejected)
}
