// Package bench measures syncs on this machine: pairs of nodes that hold sets
// of different sizes and differ by the same amount, in one process and one
// run, so that the ratio between the sizes can be trusted where a time alone
// cannot.
package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/pair"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/peer"
)

// Kind of difference.
type Kind string

// The kinds: records that one side lacks (half of them on either side),
// records changed on one side, and half of both.
const (
	Missing    Kind = "missing"
	Mismatched Kind = "mismatched"
	Mixed      Kind = "mixed"
)

// Config says what is measured.
type Config struct {
	// Sizes are the records that both sides hold, a size each.
	Sizes []int
	// Differences are made before each sync.
	Differences int
	Kind        Kind
	ValueSize   int // bytes
	// Repeat is how many syncs the medians are over.
	Repeat int
	Seed   uint64
	// Signed: records carry signatures. Without, building is faster.
	Signed bool
	Logger *slog.Logger
	Bars   *progress.Bars
}

// Bounds of what a run takes on.
const (
	MaxRecords = 100_000_000
	MaxRepeat  = 10_000
)

// measured is a sync, and what it took.
type measured struct {
	api.Report
	Usage
}

// Result is the medians of one size.
type Result struct {
	measured
	Records     int     `json:"records"`
	Differences int     `json:"differences"`
	Kind        Kind    `json:"kind"`
	Repeat      int     `json:"repeat"`
	BuildMS     float64 `json:"build_ms"`
}

func (c *Config) check() error {
	if len(c.Sizes) == 0 || c.Repeat < 1 || c.Repeat > MaxRepeat || c.Differences < 0 {
		return problem.Usage("want at least one size, 1 to %d repeats, and 0 or more differences", MaxRepeat)
	}
	for _, n := range c.Sizes {
		if n < c.Differences || n > MaxRecords {
			return problem.Usage("--records %d: want at least the %d differences, and at most %d", n, c.Differences, MaxRecords)
		}
	}
	return nil
}

// subject is one size under measurement.
type subject struct {
	*pair.Pair
	size     int
	buildMS  float64
	measured []measured
}

// Sync measures. The sizes take turns, so that what else the machine does
// falls on all of them alike.
func Sync(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	source, err := pair.NewSource(c.Seed, c.ValueSize)
	if err != nil {
		return nil, err
	}
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, size := range c.Sizes {
		p, err := pair.Open(ctx, peer.Policy{Unsigned: !c.Signed}, c.Logger)
		if err != nil {
			return nil, err
		}
		s := &subject{Pair: p, size: size}
		subjects = append(subjects, s)
		if err := c.build(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := c.turns(ctx, subjects, source); err != nil {
		return nil, err
	}
	for _, s := range subjects {
		r := Result{Records: s.size, Differences: c.Differences, Kind: c.Kind, Repeat: c.Repeat, BuildMS: s.buildMS}
		if r.measured, err = medians(s.measured); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// turns measures each subject as often as the medians are over.
func (c *Config) turns(ctx context.Context, subjects []*subject, source *pair.Source) error {
	bar := c.Bars.Count("syncs", int64(c.Repeat*len(subjects)))
	defer bar.Done()
	missing := c.Differences
	switch c.Kind {
	case Mismatched:
		missing = 0
	case Mixed:
		missing /= 2
	}
	for round := range c.Repeat {
		for _, s := range subjects {
			err := s.Diverge(ctx, source, s.size, c.Differences-missing, fmt.Sprintf("round%06d", round), missing)
			if err == nil {
				err = c.sync(ctx, s)
			}
			if err != nil {
				return fmt.Errorf("%d records, sync %d: %w", s.size, round+1, err)
			}
			bar.Add(1)
		}
	}
	return nil
}

// buildTime is the time of the first record's version; each further one is a
// millisecond later.
var buildTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// build imports the same dated records on both sides: a dated record is the
// same wherever it is imported, so that nothing needs to be sent.
func (c *Config) build(ctx context.Context, s *subject) error {
	began := time.Now()
	bar := c.Bars.Count(fmt.Sprintf("build %d", s.size), int64(2*s.size))
	defer bar.Done()
	for i, ns := range s.NS {
		source, err := pair.NewSource(c.Seed+uint64(s.size), c.ValueSize) // the same for both
		if err != nil {
			return err
		}
		if _, err := ns.Import(ctx, dated(source.Items(pair.Keys("common", s.size), bar.Add))); err != nil {
			return fmt.Errorf("build node %d: %w", i+1, err)
		}
	}
	s.buildMS = milliseconds(time.Since(began))
	// The first sync pays for connecting, which the others do not.
	r, err := s.Sync(ctx, peer.SyncOptions{})
	if err != nil {
		return fmt.Errorf("first sync: %w", err)
	}
	if d := r.MissingHere + r.MissingThere + r.Mismatched; d != 0 || !r.Verified {
		return fmt.Errorf("first sync: the same dated records differ in %d places", d)
	}
	return nil
}

func dated(items iter.Seq2[peer.Item, error]) iter.Seq2[peer.Item, error] {
	return func(yield func(peer.Item, error) bool) {
		at := buildTime
		for item, err := range items {
			item.Time = at
			at = at.Add(time.Millisecond)
			if !yield(item, err) {
				return
			}
		}
	}
}

// sync makes the sides equal, and checks that just the differences were found.
func (c *Config) sync(ctx context.Context, s *subject) error {
	before := used()
	r, err := s.Sync(ctx, peer.SyncOptions{})
	if err != nil {
		return err
	}
	u := used().since(before)
	if d := r.MissingHere + r.MissingThere + r.Mismatched; d != c.Differences || !r.Verified {
		return fmt.Errorf("found %d differences of %d, verified %v", d, c.Differences, r.Verified)
	}
	s.measured = append(s.measured, measured{api.ReportOf(&r), u})
	return nil
}
