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
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
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
	// Cold is how many times the benchmark then restarts each pair, takes its files out of
	// the kernel's cache, and measures the first sync.
	Cold int
	// Dir keeps the pairs, in a folder of each size, for the next run. Empty: they are
	// built in a temporary folder.
	Dir    string
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
	// Cold are the medians of first syncs after a restart; nil without them.
	Cold *Cold `json:"cold,omitempty"`
}

func (c *Config) check() error {
	if len(c.Sizes) == 0 || c.Repeat < 1 || max(c.Repeat, c.Cold) > MaxRepeat || min(c.Differences, c.Cold) < 0 {
		return problem.Usage("want at least one size, 1 to %d repeats, at most as many restarts, and 0 or more differences", MaxRepeat)
	}
	if c.Cold > 0 && !canForget {
		return problem.Usage("--cold: only on Linux are files taken out of the system's cache")
	}
	if c.ValueSize < pair.MinValue || c.ValueSize > pair.MaxValue {
		return problem.Usage("--value-size %d: want %d to %d bytes", c.ValueSize, pair.MinValue, pair.MaxValue)
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
	size    int
	round   int
	buildMS float64
	warm    []measured
	cold    []Cold
}

// Sync measures. The sizes take turns, so that what else the machine does
// falls on all of them alike.
func Sync(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, size := range c.Sizes {
		p, err := c.open(ctx, size)
		if err != nil {
			return nil, err
		}
		s := &subject{Pair: p, size: size}
		subjects = append(subjects, s)
		if err := c.build(ctx, s); err != nil {
			return nil, err
		}
	}
	seed := c.Seed
	for _, s := range subjects {
		seed += uint64(s.round) // the values of an earlier run would change nothing
	}
	source := pair.NewSource(seed, c.ValueSize)
	if err := c.turns(ctx, "syncs", c.Repeat, subjects, source, c.measure); err != nil {
		return nil, err
	}
	if err := c.turns(ctx, "restarts", c.Cold, subjects, source, c.measureCold); err != nil {
		return nil, err
	}
	for _, s := range subjects {
		r := Result{Records: s.size, Differences: c.Differences, Kind: c.Kind, Repeat: c.Repeat, BuildMS: s.buildMS}
		if r.measured, err = medians(s.warm); err != nil {
			return nil, err
		}
		if len(s.cold) > 0 {
			cold, err := medians(s.cold)
			if err != nil {
				return nil, err
			}
			r.Cold = &cold
		}
		results = append(results, r)
	}
	return results, nil
}

// turns measures each subject n times.
func (c *Config) turns(ctx context.Context, what string, n int, subjects []*subject, source *pair.Source, measure func(context.Context, *subject, *pair.Source) error) error {
	bar := c.Bars.Count(what, int64(n*len(subjects)))
	defer bar.Done()
	for range n {
		for _, s := range subjects {
			s.round++
			if err := measure(ctx, s, source); err != nil {
				return fmt.Errorf("%d records, sync %d: %w", s.size, s.round, err)
			}
			bar.Add(1)
		}
	}
	return nil
}

func (c *Config) open(ctx context.Context, size int) (*pair.Pair, error) {
	policy := peer.Policy{Unsigned: !c.Signed}
	if c.Dir == "" {
		return pair.Open(ctx, policy, c.Logger)
	}
	return pair.OpenIn(ctx, filepath.Join(c.Dir, strconv.Itoa(size)), policy, c.Logger)
}

// buildTime is the time of the first record's version; each further one is a
// millisecond later.
var buildTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// build imports the same dated records on both sides: a dated record is the
// same wherever it is imported, so that nothing needs to be sent.
func (c *Config) build(ctx context.Context, s *subject) error {
	began := time.Now()
	// A pair that was kept has the records of its syncs too; their keys are not used again.
	if held := int(s.NS[0].Info().Records); held >= s.size {
		s.round = held - s.size
		return c.first(ctx, s)
	}
	bar := c.Bars.Count(fmt.Sprintf("build %d", s.size), int64(2*s.size))
	defer bar.Done()
	for i, ns := range s.NS {
		source := pair.NewSource(c.Seed+uint64(s.size), c.ValueSize) // the same for both
		if _, err := ns.Import(ctx, dated(source.Items(pair.Keys("common", 0, s.size), bar.Add))); err != nil {
			return fmt.Errorf("build node %d: %w", i+1, err)
		}
	}
	s.buildMS = milliseconds(time.Since(began))
	return c.first(ctx, s)
}

// first is the sync that pays for connecting, which the others do not.
func (c *Config) first(ctx context.Context, s *subject) error {
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

// measure makes the differences, and syncs.
func (c *Config) measure(ctx context.Context, s *subject, source *pair.Source) error {
	if err := c.diverge(ctx, s, source); err != nil {
		return err
	}
	m, err := c.sync(ctx, s)
	s.warm = append(s.warm, m)
	return err
}

// sync makes the sides equal, and checks that just the differences were found.
func (c *Config) sync(ctx context.Context, s *subject) (measured, error) {
	before := used()
	r, err := s.Sync(ctx, peer.SyncOptions{})
	if err != nil {
		return measured{}, err
	}
	u := used().since(before)
	if d := r.MissingHere + r.MissingThere + r.Mismatched; d != c.Differences || !r.Verified {
		return measured{}, fmt.Errorf("found %d differences of %d, verified %v", d, c.Differences, r.Verified)
	}
	return measured{api.ReportOf(&r), u}, nil
}

func (c *Config) diverge(ctx context.Context, s *subject, source *pair.Source) error {
	missing := c.Differences
	switch c.Kind {
	case Mismatched:
		missing = 0
	case Mixed:
		missing /= 2
	}
	changed := distinct(source.Rand(), s.size, c.Differences-missing)
	fresh := slices.Collect(pair.Keys(fmt.Sprintf("round%06d", s.round), 0, missing))
	for side, ns := range s.NS {
		keys := func(yield func([]byte) bool) {
			for i := side; i < len(changed); i += 2 {
				if !yield(pair.Key("common", changed[i])) {
					return
				}
			}
			for i := side; i < len(fresh); i += 2 {
				if !yield(fresh[i]) {
					return
				}
			}
		}
		if _, err := ns.Import(ctx, source.Items(keys, nil)); err != nil {
			return fmt.Errorf("write on node %d: %w", side+1, err)
		}
	}
	return nil
}

// distinct draws n different numbers below size.
func distinct(r *rand.Rand, size, n int) []int {
	seen := make(map[int]bool, n)
	out := make([]int, 0, n)
	for len(out) < n {
		if i := r.IntN(size); !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	return out
}
