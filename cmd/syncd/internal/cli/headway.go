package cli

import (
	"context"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

// headwayEvery is the pause between two questions to the daemon how far a sync is.
const headwayEvery = 500 * time.Millisecond

// headway draws how far a sync of the daemon is, until stop is called: a spinner, and
// for a sync that goes in parts a bar that counts the records that have travelled, of
// those that were estimated.
func headway(ctx context.Context, bars *progress.Bars, daemon *client.Client, name string, in api.SyncRequest) (stop func()) {
	spinner := bars.Spin(name)
	if bars == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var bar *progress.Bar
		defer func() { bar.Done() }()
		for tick := time.NewTicker(headwayEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			running, err := daemon.Running(ctx)
			if err != nil {
				continue // the sync itself says what is wrong
			}
			for _, r := range running {
				if r.Namespace != in.NS || !strings.HasSuffix(in.Peer, r.Peer) || r.Parts == 0 {
					continue
				}
				if bar == nil {
					spinner.Done()
					bar = bars.Count(name, r.Estimate)
				}
				bar.Set(min(headwayOf(&r, in.DryRun), r.Estimate-1)) // a bar that is full is over
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		spinner.Done()
	}
}

// headwayOf is how many differences are settled; a dry run settles those that it has
// found.
func headwayOf(r *api.Report, dry bool) int64 {
	if dry {
		return int64(r.Differences())
	}
	return int64(r.Applied + r.Sent)
}
