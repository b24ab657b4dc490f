package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/syncd-io/syncd/cmd/syncd/internal/bench"
	"github.com/syncd-io/syncd/cmd/syncd/internal/demo"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/reconcile"
)

type benchCmd struct {
	Sync benchSyncCmd `cmd:"" help:"Measure syncs of sets of different sizes that differ by the same amount."`
}

type benchSyncCmd struct {
	Records     []int  `help:"Sizes of the sets." default:"10000,1000000" placeholder:"N,…"`
	Differences int    `help:"Differences made before each sync." default:"100" placeholder:"N"`
	Kind        string `help:"Kind of differences: missing (half on either side), mismatched, or mixed." enum:"missing,mismatched,mixed" default:"mixed"`
	ValueSize   int    `help:"Bytes of a value." default:"256" placeholder:"BYTES"`
	Repeat      int    `help:"How many syncs the medians are over." default:"31" placeholder:"N"`
	Seed        uint64 `help:"Where keys and values come from." default:"1"`
	Signed      bool   `help:"With signatures, as namespaces have by default; building takes longer."`
}

func (benchSyncCmd) Help() string {
	return `Builds a pair of nodes for each size in this process, on disk in a temporary folder with every commit synced, lets them differ and syncs them, in turns. Prints the median of each figure. Figures of one run can be compared with one another.

Examples:
    syncd bench sync --records 10000,1000000 --differences 100
    syncd bench sync --records 1000 --differences 10 --kind mismatched --repeat 5 -o json
    syncd bench sync --records 10000,1000000 --value-size 32 --signed`
}

// Run measures.
func (c benchSyncCmd) Run(ctx context.Context, a *app) error {
	results, err := bench.Sync(ctx, bench.Config{
		Sizes: c.Records, Differences: c.Differences, Kind: bench.Kind(c.Kind), ValueSize: c.ValueSize,
		Repeat: c.Repeat, Seed: c.Seed, Signed: c.Signed, Logger: a.verboseLog(), Bars: a.bars(),
	})
	return a.answer(attempt(err, "bench sync"), results, func() { a.printBench(results) })
}

// printBench prints a column for each size and, from the second on, its ratio
// to the first.
func (a *app) printBench(results []bench.Result) {
	head := []string{"median of " + strconv.Itoa(results[0].Repeat)}
	for i, r := range results {
		head = append(head, strconv.Itoa(r.Records))
		if i > 0 {
			head = append(head, "ratio")
		}
	}
	t := a.table(head...)
	line := func(name string, value func(bench.Result) float64, text func(float64) string) {
		row := []string{name}
		first := value(results[0])
		for i, r := range results {
			row = append(row, text(value(r)))
			if i > 0 {
				row = append(row, ratio(value(r), first))
			}
		}
		t.row(row...)
	}
	count := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	bytes := func(v float64) string { return size(int64(v)) }
	line("differences", func(r bench.Result) float64 { return float64(r.Differences) }, count)
	line("round trips", func(r bench.Result) float64 { return float64(r.Rounds) }, count)
	line("cells", func(r bench.Result) float64 { return float64(r.Cells) }, count)
	line("sketch", func(r bench.Result) float64 { return float64(r.SketchBytes) }, bytes)
	line("records moved", func(r bench.Result) float64 { return float64(r.RecordBytes) }, bytes)
	line("all bytes", func(r bench.Result) float64 { return float64(r.WireBytesSent + r.WireBytesReceived) }, bytes)
	for _, step := range reconcile.Steps() {
		line(step.String(), func(r bench.Result) float64 { return r.StepsMS[step.String()] }, millis)
	}
	line("whole sync", func(r bench.Result) float64 { return r.DurationMS }, millis)
	line("processor time", func(r bench.Result) float64 { return r.CPUMS }, millis)
	line("page faults", func(r bench.Result) float64 { return float64(r.MinorFaults + r.MajorFaults) }, count)
	line("building both", func(r bench.Result) float64 { return r.BuildMS }, millis)
	t.print()
}

func ratio(v, first float64) string {
	if first == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v/first)
}

type demoCmd struct {
	Records    int    `help:"Records that both nodes hold at first." default:"10000" placeholder:"N"`
	Missing    int    `help:"New records that each node then writes alone; at most as many as --records." default:"500" placeholder:"N"`
	Mismatched int    `help:"Common records that are then changed, half of them by either node; at most as many as --records." default:"1000" placeholder:"N"`
	Empty      bool   `help:"Node 2 starts empty, instead of with the common records."`
	ValueSize  int    `help:"Bytes of a value." default:"256" placeholder:"BYTES"`
	Seed       uint64 `help:"Where keys and values come from." default:"1"`
}

func (demoCmd) Help() string {
	return `Starts two nodes in this process, each with a database of its own in a temporary folder, connected over loopback. Node 1 is loaded and node 2 synced from it; then the two go apart. The demo forecasts a sync, runs it, and reads both nodes in full to see that they hold the same. Exit code 0 only if they do. It needs no daemon and leaves nothing behind.

Examples:
    syncd demo
    syncd demo --missing 0 --mismatched 1000
    syncd demo --records 100000 --empty
    syncd demo -o json | jq .equal`
}

// Run runs the demo.
func (c demoCmd) Run(ctx context.Context, a *app) error {
	res, err := demo.Run(ctx, demo.Config{
		Records: c.Records, Missing: c.Missing, Mismatched: c.Mismatched, Empty: c.Empty,
		ValueSize: c.ValueSize, Seed: c.Seed, Logger: a.verboseLog(), Bars: a.bars(),
	})
	err = a.answer(attempt(err, "demo"), res, func() { a.printDemo(res) })
	if err == nil && !res.Equal {
		return fmt.Errorf("demo: after the sync the nodes still hold different records: %w", problem.ErrDiffers)
	}
	return err
}

func (a *app) printDemo(r demo.Result) {
	t := a.table("", "made", "found")
	found := r.Found()
	t.row("missing on node 2", strconv.Itoa(r.Expected.MissingHere), strconv.Itoa(found.MissingHere))
	t.row("missing on node 1", strconv.Itoa(r.Expected.MissingThere), strconv.Itoa(found.MissingThere))
	t.row("mismatched", strconv.Itoa(r.Expected.Mismatched), strconv.Itoa(found.Mismatched))
	t.print()
	wire := r.WireBytesSent + r.WireBytesReceived
	t = a.table("", "")
	t.row("", "")
	t.row("forecast of diff", size(r.Forecast.ForecastBytes))
	t.row("moved by the sync", fmt.Sprintf("%s (%s out, %s in)", size(wire), size(r.WireBytesSent), size(r.WireBytesReceived)))
	t.row("sending everything", fmt.Sprintf("%s (node 1's records, one way)", size(r.SendAllBytes)))
	t.row("method", r.Method)
	t.row("round trips", strconv.Itoa(r.Rounds))
	t.row("cells", strconv.Itoa(r.Cells))
	t.row("sketch", size(r.SketchBytes)+perDifference(r.SketchBytes, found.Total()))
	t.row("records", size(r.RecordBytes)+perDifference(r.RecordBytes, found.Total()))
	t.row("all bytes", size(wire)+perDifference(wire, found.Total()))
	t.row("applied, sent", fmt.Sprintf("%d, %d", r.Applied, r.Sent))
	t.row("", "")
	for _, step := range reconcile.Steps() {
		t.row(step.String(), millis(r.StepsMS[step.String()]))
	}
	t.row("whole sync", millis(r.DurationMS))
	t.row("", "")
	t.row("proved by digests", yesNo(r.Verified))
	t.row("read in full", equalText(r))
	t.print()
}

func equalText(r demo.Result) string {
	if r.Equal {
		return fmt.Sprintf("equal: %d records with the same keys, versions and values", r.Records)
	}
	return "NOT equal"
}

func perDifference(bytes int64, differences int) string {
	if differences == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f bytes a difference", float64(bytes)/float64(differences))
}
