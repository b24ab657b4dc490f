package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/pair"
)

// Cold is a first sync after a restart, with none of the nodes' files in the kernel's
// cache when they were opened.
type Cold struct {
	api.Report
	Usage
	// OpenMS is how long it took to open both nodes, one after the other.
	OpenMS float64 `json:"open_ms"`
}

// coldSync is one measured.
type coldSync struct {
	report api.Report
	usage  Usage
	opened opening
}

type opening struct {
	MS float64 `json:"ms"`
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
	opened := opening{milliseconds(time.Since(began))}
	r, u, err := c.sync(ctx, s)
	s.cold = append(s.cold, coldSync{r, u, opened})
	return err
}

// coldOf are the medians, nil of none.
func coldOf(all []coldSync) (*Cold, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var reports []api.Report
	var usage []Usage
	var openings []opening
	for _, s := range all {
		reports, usage, openings = append(reports, s.report), append(usage, s.usage), append(openings, s.opened)
	}
	report, err := medians(reports)
	if err != nil {
		return nil, err
	}
	u, err := medians(usage)
	if err != nil {
		return nil, err
	}
	opened, err := medians(openings)
	return &Cold{report, u, opened.MS}, err
}
