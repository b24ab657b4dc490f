// Package demo shows the main job end to end: two nodes in one process hold
// the same records, go apart, find what differs, exchange it, and are read in
// full to see that they are equal.
package demo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/pair"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// Config says how the sides shall differ.
type Config struct {
	// Records are common to both at first.
	Records int
	// Missing records are then written on each side alone, Mismatched ones
	// changed, half of them by either side. Both are clamped to Records.
	Missing, Mismatched int
	// Empty: node 2 starts with nothing, instead of the common records.
	Empty bool
	// ValueSize is in bytes.
	ValueSize int
	Seed      uint64
	Logger    *slog.Logger
	Bars      *progress.Bars
}

// MaxRecords bounds a demo to what a small machine's disk holds.
const MaxRecords = 10_000_000

// Differences counts records by kind, as node 2 sees it.
type Differences struct {
	MissingHere  int `json:"missing_here"`
	MissingThere int `json:"missing_there"`
	Mismatched   int `json:"mismatched"`
}

// Total is the sum of all kinds.
func (d Differences) Total() int { return d.MissingHere + d.MissingThere + d.Mismatched }

// Result is the report of the sync, seen from node 2, and what was around it.
type Result struct {
	api.Report
	// Equal: both nodes were read in full, and hold the same keys, versions
	// and values.
	Equal bool `json:"equal"`
	// Expected are the differences that were made.
	Expected Differences `json:"expected"`
	// Records on each side in the end.
	Records int    `json:"records"`
	Seed    uint64 `json:"seed"`
	// Forecast is what diff said before the sync.
	Forecast api.Report `json:"forecast"`
	// BytesPerDifference are all bytes on the wire, both ways, a difference.
	BytesPerDifference float64 `json:"bytes_per_difference"`
	// SendAllBytes is what sending all records one way would have moved.
	SendAllBytes int64 `json:"send_all_bytes"`
	// LoadMS is for writing the common records and their first sync.
	LoadMS float64 `json:"load_ms"`
}

// Found are the differences that the sync found.
func (r *Result) Found() Differences {
	return Differences{r.MissingHere, r.MissingThere, r.Mismatched}
}

func (c *Config) check() error {
	switch {
	case c.Records < 0 || c.Records > MaxRecords:
		return problem.Usage("--records %d: want 0 to %d", c.Records, MaxRecords)
	case c.Missing < 0 || c.Mismatched < 0:
		return problem.Usage("--missing and --mismatched count from 0")
	}
	c.Missing, c.Mismatched = min(c.Missing, c.Records), min(c.Mismatched, c.Records)
	if c.Empty {
		c.Missing, c.Mismatched = 0, 0 // what one side has is missing on the other as it is
	}
	return nil
}

// Run runs the demo. An error ends it early; that the sides are not equal is
// no error but a result.
func Run(ctx context.Context, c Config) (res Result, err error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	source, err := pair.NewSource(c.Seed, c.ValueSize)
	if err != nil {
		return Result{}, err
	}
	p, err := pair.Open(ctx, peer.Policy{}, c.Logger)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if closing := p.Close(); err == nil {
			err = closing
		}
	}()
	res.Seed = c.Seed
	began := time.Now()
	if err := c.load(ctx, p, source); err != nil {
		return res, err
	}
	res.LoadMS = float64(time.Since(began)) / float64(time.Millisecond)
	if err := p.Diverge(ctx, source, c.Records, c.Mismatched, "fresh", 2*c.Missing); err != nil {
		return res, err
	}
	res.Expected = Differences{c.Missing, c.Missing, c.Mismatched}
	if c.Empty {
		res.Expected.MissingHere = c.Records
	}
	forecast, err := p.Sync(ctx, peer.SyncOptions{DryRun: true})
	if err != nil {
		return res, fmt.Errorf("diff: %w", err)
	}
	res.Forecast = api.ReportOf(&forecast)
	bar := c.Bars.Count("sync", int64(res.Expected.Total()))
	report, err := p.Sync(ctx, peer.SyncOptions{Progress: func(r reconcile.Report) { bar.Set(int64(r.Applied + r.Sent)) }})
	bar.Done()
	res.Report = api.ReportOf(&report)
	if err != nil {
		return res, fmt.Errorf("sync: %w", err)
	}
	held, err := p.Compare(ctx)
	if err != nil {
		return res, fmt.Errorf("compare: %w", err)
	}
	res.Equal, res.Records, res.SendAllBytes = held.Equal, held.Records, held.Bytes
	if d := res.Found().Total(); d > 0 {
		res.BytesPerDifference = float64(res.WireBytesSent+res.WireBytesReceived) / float64(d)
	}
	return res, nil
}

// load writes the common records on node 1, once, and lets node 2 have them.
func (c *Config) load(ctx context.Context, p *pair.Pair, source *pair.Source) error {
	bar := c.Bars.Count("load", int64(c.Records))
	_, err := p.NS[0].Import(ctx, source.Items(pair.Keys("common", c.Records), bar.Add))
	bar.Done()
	if err != nil {
		return fmt.Errorf("load node 1: %w", err)
	}
	if c.Empty {
		return nil
	}
	bar = c.Bars.Count("first sync", int64(c.Records))
	_, err = p.Sync(ctx, peer.SyncOptions{Progress: func(r reconcile.Report) { bar.Set(int64(r.Applied)) }})
	bar.Done()
	if err != nil {
		return fmt.Errorf("first sync: %w", err)
	}
	return nil
}
