package tally

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/peer"
)

// SharedKey is the obvious tally, and wrong: all machines write one key. It counts
// correctly on one machine, and on several that sync between any two counts. Of the
// counts that two machines make while they are apart, those of one are lost. The test
// of this package finds that.
type SharedKey struct{ space *peer.Namespace }

// OpenSharedKey counts in a namespace.
func OpenSharedKey(space *peer.Namespace) *SharedKey { return &SharedKey{space} }

// Add counts n more of what.
func (s *SharedKey) Add(ctx context.Context, what string, n uint64) error {
	return add(ctx, s.space, []byte(what), n)
}

// Total is how many have been counted, some of the time.
func (s *SharedKey) Total(ctx context.Context, what string) (uint64, error) {
	held, err := s.space.Get(ctx, []byte(what))
	if err != nil && !errors.Is(err, peer.ErrNotFound) {
		return 0, err
	}
	return read(&held)
}
