package testnet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	firstSeed = flag.Uint64("seed", 0, "TestSeeds: the first seed")
	seedCount = flag.Int("seeds", 0, "TestSeeds: how many seeds; 0: one if -seed is given, else 80, or 10 under the race detector")
	passes    = flag.Int("passes", 2, "TestSeeds: how often each plan runs, 1 or 2; both of two runs must leave the same trace")
	again     = flag.Uint64("again", 1, "TestSeeds: of two passes, the second runs each plan whose seed this number divides")
	profile   = flag.String("profile", "mixed", "TestSeeds: what is done to the nodes: calm, rough, clocks, disks, members, ranges, live, shards, writer or mixed")
	budget    = flag.Duration("shrink", time.Minute, "TestSeeds: how long to shrink what fails; 0 leaves it as it is")
	found     = flag.String("found", "", "TestSeeds: the folder for shrunk tapes; a temporary one if empty")
)

// TestSeeds runs plans drawn from seeds, each twice or as -passes and -again say: the nodes
// converge, the checker finds no violation, and both runs leave the same trace. It shrinks a
// failing run and saves it as a tape; TestFound runs the tapes in scenarios/found.
func TestSeeds(t *testing.T) {
	count := *seedCount
	if count == 0 {
		count = defaultSeeds
		flag.Visit(func(f *flag.Flag) {
			if f.Name == "seed" {
				count = 1
			}
		})
	}
	before := liveHeap()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // runs are short, and leave much behind
	var next atomic.Int64
	var failed atomic.Int64
	var repeated, events, sessions, asks, watched atomic.Int64
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= int64(count) || failed.Load() >= 5 || t.Context().Err() != nil {
					return
				}
				c := Config{Seed: *firstSeed + uint64(n), Profile: *profile}
				res, wrong := once(t.Context(), c)
				if *passes == 2 && c.Seed%max(*again, 1) == 0 && wrong == "" {
					repeated.Add(1)
					var second Result
					if second, wrong = once(t.Context(), c); wrong == "" && *second.TraceHash != *res.TraceHash {
						wrong = fmt.Sprintf("two runs left two traces, %s and %s", *res.TraceHash, *second.TraceHash)
					}
				}
				events.Add(int64(res.Events))
				sessions.Add(int64(res.Sessions))
				asks.Add(int64(res.Asks))
				watched.Add(int64(res.Watched))
				if wrong == "" {
					continue
				}
				failed.Add(1)
				t.Errorf("seed %d: %s\nreplay it by: go test ./testnet -run TestSeeds -seed %d -profile %s\n%s",
					c.Seed, wrong, c.Seed, *profile, save(t, &res, wrong))
			}
		})
	}
	running.Wait()
	// Runs leave no memory behind, whatever their number.
	if kept := liveHeap() - before; kept > 64<<20 {
		t.Errorf("%d seeds have left %d bytes of live heap", count, kept)
	}
	t.Logf("%d seeds from %d on, profile %s, %d of them twice: %d events, %d syncs, %d waits and answers and %d events of watches a pass", count, *firstSeed, *profile, repeated.Load(), events.Load(), sessions.Load(), asks.Load(), watched.Load())
}

func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// once runs a drawn plan, and describes its failure.
func once(ctx context.Context, c Config) (Result, string) {
	res, err := Run(ctx, c)
	if err != nil {
		return res, err.Error()
	}
	var wrong []string
	for i, v := range res.Violations {
		if i == 5 {
			wrong = append(wrong, fmt.Sprintf("and %d more", len(res.Violations)-i))
			break
		}
		wrong = append(wrong, v.String())
	}
	return res, strings.Join(append(wrong, res.Unmet...), "\n\t")
}

// save shrinks a failing run and writes its tape. It returns a message about it. What Shrink
// does not look for, as a second trace, stays as it is.
func save(t *testing.T, res *Result, wrong string) string {
	small := *res
	if *budget > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), *budget)
		defer cancel()
		if shrunk, err := res.Shrink(ctx); err == nil {
			small = shrunk
		}
	}
	folder := *found
	if folder == "" {
		folder = os.TempDir()
	}
	small.plan.Prose = []string{
		fmt.Sprintf("Found by TestSeeds, profile %s, seed %d. It failed with:", *profile, res.Seed),
		strings.TrimSpace(strings.SplitN(wrong, "\n", 2)[0]),
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%d.txt", *profile, res.Seed))
	if err := os.WriteFile(path, []byte(small.Tape()), 0o600); err != nil {
		return fmt.Sprintf("its tape could not be saved: %v", err)
	}
	return fmt.Sprintf("its tape of %d events: %s; put it into testnet/scenarios/found, where TestFound replays it", len(small.plan.Events), path)
}
