package syncing

import (
	"context"
	"errors"
)

// ErrRejected: the sync ran to its end, and one side declined records of the other.
var ErrRejected = errors.New("records were declined")

// Failed reports whether a sync has not run to its end. One in which records were declined
// has: all others have travelled.
func Failed(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrRejected)
}
