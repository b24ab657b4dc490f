package kvstore

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

var _ dbadapter.Examiner = (*Store)(nil)

// Examine reads all files of the database through; see dbadapter.Examiner.
// Close waits for it.
func (s *Store) Examine(ctx context.Context) error {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	if err := s.life.Err(); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	if err := s.db.Examine(ctx); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	return nil
}
