// Package bench measures syncs on this machine: pairs of nodes that hold sets
// of different sizes and differ by the same amount, in one process and one
// run, so that the ratio between the sizes can be trusted where a time alone
// cannot.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
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

// Result is the medians of one size.
type Result struct {
	api.Report
	Records     int     `json:"records"`
	Differences int     `json:"differences"`
	Kind        Kind    `json:"kind"`
	Repeat      int     `json:"repeat"`
	BuildMS     float64 `json:"build_ms"`
}

func (c *Config) check() error {
	if len(c.Sizes) == 0 || c.Repeat < 1 || c.Repeat > MaxRepeat || c.Differences < 0 {
		return problem.Usage("want at least one size, 1 to %d repeats and 0 or more differences", MaxRepeat)
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
	reports []api.Report
}

// Sync measures. The sizes take turns, so that what else the machine does
// falls on all of them alike.
func Sync(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	source := pair.NewSource(c.Seed, c.ValueSize)
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
	bar := c.Bars.Count("syncs", int64(c.Repeat*len(subjects)))
	defer bar.Done()
	for range c.Repeat {
		for _, s := range subjects {
			if err := c.measure(ctx, s, source); err != nil {
				return nil, fmt.Errorf("%d records, sync %d: %w", s.size, s.round, err)
			}
			bar.Add(1)
		}
	}
	for _, s := range subjects {
		report, err := medians(s.reports)
		if err != nil {
			return nil, err
		}
		results = append(results, Result{report, s.size, c.Differences, c.Kind, c.Repeat, s.buildMS})
	}
	return results, nil
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
		source := pair.NewSource(c.Seed+uint64(s.size), c.ValueSize) // the same for both
		if _, err := ns.Import(ctx, dated(source.Items(pair.Keys("common", 0, s.size), bar.Add))); err != nil {
			return fmt.Errorf("build node %d: %w", i+1, err)
		}
	}
	s.buildMS = float64(time.Since(began)) / float64(time.Millisecond)
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

// measure makes the differences, syncs, and checks that just these were found.
func (c *Config) measure(ctx context.Context, s *subject, source *pair.Source) error {
	s.round++
	if err := c.diverge(ctx, s, source); err != nil {
		return err
	}
	r, err := s.Sync(ctx, peer.SyncOptions{})
	if err != nil {
		return err
	}
	if d := r.MissingHere + r.MissingThere + r.Mismatched; d != c.Differences || !r.Verified {
		return fmt.Errorf("found %d differences of %d, verified %v", d, c.Differences, r.Verified)
	}
	s.reports = append(s.reports, api.ReportOf(&r))
	return nil
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

// medians takes the median of each number, the lower one of two.
func medians(reports []api.Report) (api.Report, error) {
	all := make([]map[string]any, len(reports))
	for i, r := range reports {
		raw, err := json.Marshal(r)
		if err != nil {
			return api.Report{}, err
		}
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return api.Report{}, err
		}
	}
	raw, err := json.Marshal(medianOf(all))
	if err != nil {
		return api.Report{}, err
	}
	var out api.Report
	err = json.Unmarshal(raw, &out)
	return out, err
}

// medianOf goes through the JSON forms field by field; what is no number is
// taken from the last.
func medianOf(all []map[string]any) map[string]any {
	out := map[string]any{}
	for name, last := range all[len(all)-1] {
		switch last.(type) {
		case float64:
			var numbers []float64
			for _, m := range all {
				v, _ := m[name].(float64) // a step that did not occur took no time
				numbers = append(numbers, v)
			}
			slices.Sort(numbers)
			out[name] = numbers[(len(numbers)-1)/2]
		case map[string]any:
			var inner []map[string]any
			for _, m := range all {
				v, _ := m[name].(map[string]any)
				inner = append(inner, v)
			}
			out[name] = medianOf(inner)
		default:
			out[name] = last
		}
	}
	return out
}
