package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/testnet"
)

// maxFailed is how many of the runs that failed are kept, and printed.
const maxFailed = 10

// tally is what came of many runs.
type tally struct {
	mu                       sync.Mutex
	done, failed             int
	sessions, frames, events int
	virtual                  time.Duration
	lines                    []json.RawMessage // by run, if they are printed
	kept                     []testnet.Result  // of those that failed, the first seeds
	bar                      *progress.Bar
}

func (t *tally) add(c *runCmd, i int, res *testnet.Result) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bar.Add(1)
	t.done++
	t.sessions += res.Sessions
	t.frames += res.Frames
	t.events += res.Events
	t.virtual += time.Duration(res.VirtualMS) * time.Millisecond
	if t.lines != nil {
		line := c.outcome(res)
		line.Series = nil
		if t.lines[i], err = json.Marshal(line); err != nil {
			return err
		}
	}
	if res.Passed() {
		return nil
	}
	t.failed++
	t.kept = append(t.kept, *res)
	slices.SortFunc(t.kept, func(a, b testnet.Result) int { return cmp.Compare(a.Seed, b.Seed) })
	t.kept = t.kept[:min(len(t.kept), maxFailed)]
	return nil
}

// runs does the runs, as many at a time as there are processors, each with the seed
// after that of the one before.
func (c *runCmd) runs(ctx context.Context, p *program, config testnet.Config, title string) error {
	begun := time.Now()
	t := &tally{bar: p.bars().Count("runs", int64(c.Runs))}
	if p.json() {
		t.lines = make([]json.RawMessage, c.Runs)
	}
	first, err := c.one(ctx, config) // it also tells the scenario's own seed
	if err == nil {
		err = t.add(c, 0, &first)
	}
	running, among := errgroup.WithContext(ctx)
	running.SetLimit(runtime.GOMAXPROCS(0))
	for i := 1; i < c.Runs && err == nil && among.Err() == nil; i++ {
		running.Go(func() error {
			mine := config
			mine.Seed = first.Seed + uint64(i)
			res, err := c.one(among, mine)
			if err == nil {
				err = t.add(c, i, &res)
			}
			return err
		})
	}
	err = cmp.Or(err, running.Wait(), context.Cause(ctx))
	t.bar.Done()
	if err != nil {
		return err
	}
	saved, shown := "", &first
	if t.failed > 0 {
		shown = &t.kept[0]
	}
	if t.failed > 0 || c.Runs == 1 {
		if saved, err = c.save(ctx, p, shown); err != nil {
			return err
		}
	}
	switch {
	case p.json() && c.Runs == 1:
		err = p.printJSON(c.outcome(&first))
	case p.json():
		err = p.printJSON(t.lines)
	case c.Runs == 1:
		err = c.print(p, &first, title, saved)
	default:
		err = c.printTally(p, t, first.Seed, saved, time.Since(begun))
	}
	if err != nil || t.failed == 0 {
		return err
	}
	return c.failure(shown)
}

func (c *runCmd) printTally(p *program, t *tally, first uint64, saved string, wall time.Duration) error {
	out := p.table()
	out.row("runs", fmt.Sprintf("%d, seeds %d to %d", t.done, first, first+uint64(c.Runs)-1))
	out.row("passed", fmt.Sprint(t.done-t.failed))
	if t.failed > 0 {
		out.row("failed", fmt.Sprint(t.failed))
	}
	out.row("happened", fmt.Sprintf("%d syncs, %d frames, %d events of the simulator", t.sessions, t.frames, t.events))
	out.row("time", fmt.Sprintf("%s for the nodes, %s here", t.virtual.Round(time.Second), wall.Round(10*time.Millisecond)))
	if saved != "" {
		out.row("tape", saved)
	}
	for i := range t.kept {
		res := &t.kept[i]
		out.row("", "")
		out.row("failed", fmt.Sprintf("seed %d: %s", res.Seed, strings.Join(res.Unmet, "; ")))
		out.row("again", c.replay(res))
	}
	if more := t.failed - len(t.kept); more > 0 {
		out.row("", "")
		out.row("failed", fmt.Sprintf("and %d more; -o json prints all", more))
	}
	return out.Flush()
}
