package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/pair"
)

// Cold is a first sync after a restart, with none of the nodes' files in the kernel's
// cache when they were opened.
type Cold struct {
	measured
	// OpenMS is how long it took to open both nodes, one after the other.
	OpenMS float64 `json:"open_ms"`
}

// measureCold makes the differences, stops the nodes in order, has the kernel forget
// their files, starts them and syncs.
func (c *Config) measureCold(ctx context.Context, s *subject, source *pair.Source) error {
	if err := c.diverge(ctx, s, source); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if err := forget(s.Dir); err != nil {
		return fmt.Errorf("take the files out of the kernel's cache: %w", err)
	}
	began := time.Now()
	if err := s.Start(ctx); err != nil {
		return err
	}
	opened := milliseconds(time.Since(began))
	m, err := c.sync(ctx, s)
	s.cold = append(s.cold, Cold{m, opened})
	return err
}
