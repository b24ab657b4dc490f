package kvstore

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

var _ dbadapter.Examiner = (*Store)(nil)

// Examine reads all files of the database through, if it can; see dbadapter.Examiner.
// Close waits for it.
func (s *Store) Examine(ctx context.Context) error {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	if err := s.life.Err(); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	x, ok := s.db.(kv.Examiner)
	if !ok {
		return nil
	}
	if err := x.Examine(ctx); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	return nil
}
