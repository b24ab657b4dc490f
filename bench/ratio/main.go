// Command ratio measures what the project promises as ratios: ours beside a
// baseline, both in one process, run after run, and the median of the runs'
// ratios. Ratios of one run survive a busy machine; absolute times do not.
//
// The benchmarks themselves stand in the packages that they measure, where
// they can reach the baseline's internals; this command builds each package's
// test binary once, runs it -count times, and pairs the figures by name.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
)

func main() {
	count := flag.Int("count", 9, "runs; the table shows medians")
	only := flag.String("only", "", "compare only what matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *count, *only); err != nil {
		fmt.Fprintln(os.Stderr, "ratio:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, count int, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "syncd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tours\tbaseline\tratio\tfrom – to\ttarget\truns\t")
	for _, s := range suites {
		s.comparisons = slices.DeleteFunc(slices.Clone(s.comparisons), func(c comparison) bool { return !wanted.MatchString(c.what) })
		if len(s.comparisons) == 0 {
			continue
		}
		runs, err := s.measure(ctx, dir, count)
		if err != nil {
			return err
		}
		for _, c := range s.comparisons {
			row, err := c.row(runs)
			if err != nil {
				return fmt.Errorf("%s: %w", s.pkg, err)
			}
			fmt.Fprintln(table, row)
		}
	}
	return table.Flush()
}

// figures are one run's values by benchmark name and unit.
type figures map[string]map[string]float64

// measure builds the suite's test binary and runs its benchmarks count times.
func (s *suite) measure(ctx context.Context, dir string, count int) ([]figures, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(s.pkg, "/", "-")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+s.pkg)
	build.Dir = ".." // the module that is measured
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the benchmarks of %s: %w", s.pkg, err)
	}
	var runs []figures
	for i := range count {
		fmt.Fprintf(os.Stderr, "%s: run %d of %d\n", s.pkg, i+1, count)
		bench := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+s.bench, "-test.benchtime="+s.benchtime)
		bench.Dir = filepath.Join("..", s.pkg)
		bench.Stderr = os.Stderr
		out, err := bench.Output()
		if err != nil {
			return nil, fmt.Errorf("running the benchmarks of %s: %w\n%s", s.pkg, err, out)
		}
		f, err := parse(out)
		if err != nil {
			return nil, fmt.Errorf("reading the benchmarks of %s: %w", s.pkg, err)
		}
		runs = append(runs, f)
	}
	return runs, nil
}

// processors is the "-2" that the benchmark runner puts behind a name.
var processors = regexp.MustCompile(`-\d+$`)

func parse(out []byte) (figures, error) {
	f := figures{}
	r := benchfmt.NewReader(bytes.NewReader(out), "benchmarks")
	for r.Scan() {
		result, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		values := map[string]float64{}
		for _, v := range result.Values {
			// benchfmt tidies ns/op into sec/op; the table speaks as the runner does.
			unit, value := cmp.Or(v.OrigUnit, v.Unit), v.Value
			if v.OrigUnit != "" {
				value = v.OrigValue
			}
			values[unit] = value
		}
		f[processors.ReplaceAllString(result.Name.String(), "")] = values
	}
	return f, r.Err()
}

// row is the comparison's line in the table.
func (c *comparison) row(runs []figures) (string, error) {
	var ours, base, ratios []float64
	for _, f := range runs {
		a, err := f.get(c.ours)
		if err != nil {
			return "", err
		}
		b, err := f.get(c.base)
		if err != nil {
			return "", err
		}
		ours, base, ratios = append(ours, a), append(base, b), append(ratios, a/b)
	}
	return fmt.Sprintf("%s\t%.4g %s\t%.4g %s\t%.3f\t%.3f – %.3f\t%s\t%d\t", c.what, median(ours), c.ours.unit,
		median(base), c.base.unit, median(ratios), slices.Min(ratios), slices.Max(ratios), cmp.Or(c.target, "–"), len(runs)), nil
}

func (f figures) get(wanted figure) (float64, error) {
	v, ok := f[wanted.bench][wanted.unit]
	if !ok || v <= 0 {
		return 0, fmt.Errorf("no %s of %s in the output; is the table in bench/ratio out of date?", wanted.unit, wanted.bench)
	}
	return v, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
