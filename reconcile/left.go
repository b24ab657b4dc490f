package reconcile

import (
	"errors"
	"fmt"
)

// The ranges that a sync has found to disagree, and leaves.

// whole is the session's error where ranges are left for the next sync.
func (s *party) whole(err error) error {
	if left := s.link.report.Repair.Left; err == nil && left > 0 {
		s.link.deaf = true // the peer knows it
		return fmt.Errorf("%w: what differs in %d ranges waits for the next sync; the others are equal", ErrNotVerified, left)
	}
	return err
}

// listable says what to do where ranges that disagree are left for every next sync, too.
func (a *initiator) listable(err error) error {
	if a.overfull > 0 && errors.Is(err, ErrNotVerified) {
		return fmt.Errorf("%w; %d of the ranges hold more than %d records each, and no sync compares them exactly: sync once by the method all", err, a.overfull, maxMarks)
	}
	return err
}
