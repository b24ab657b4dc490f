// Package turns measures several versions of iblt/rateless by turns in one process.
package turns

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// Pair is index and checksum.
type Pair = [2]uint64

// Subject is one version: package subject, as it is compiled with it.
type Subject struct {
	Name      string
	Replacing func(old, fresh []Pair, m int) func(from, to int)
	Decoding  func(theirs, ours []Pair, local map[uint64]uint64, d, m int) func() error
	Building  func(pairs []Pair, m int) func() error
}

// workload is something that all versions do with the same pairs, turn after turn.
type workload struct {
	name  string
	items int // of one turn
	turns int
	// garbage is set if a turn leaves memory behind, which is collected before the next one.
	garbage bool
	// begin makes a version ready and returns its turn.
	begin func(s Subject) func(turn int) error
}

// Run measures all subjects, of which the first is compared with each of the others, and prints
// a table. The command line says what is measured, and how often.
func Run(subjects []Subject) error {
	only := flag.String("only", "", "measure only what matches this regular expression")
	effort := flag.Float64("effort", 1, "turns, as a multiple of the usual number")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "ns of the processors' time\t")
	for i, s := range subjects {
		fmt.Fprintf(table, "%s\t", s.Name)
		if i > 0 {
			fmt.Fprint(table, "ratio\t")
		}
	}
	fmt.Fprintln(table)
	for _, w := range workloads() {
		if !wanted.MatchString(w.name) {
			continue
		}
		times, err := w.measure(subjects, max(1, int(*effort*float64(w.turns))))
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Fprintf(table, "%s\t", w.name)
		for i, t := range times {
			fmt.Fprintf(table, "%.1f\t", t)
			if i > 0 {
				fmt.Fprintf(table, "%.3f\t", times[0]/t)
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// measure is what an item takes of the processors, for each subject: the mean of the
// lowest tenth of its turns, since what other programs do only adds to a turn.
func (w workload) measure(subjects []Subject, turns int) ([]float64, error) {
	var doing []func(int) error
	for _, s := range subjects {
		doing = append(doing, w.begin(s))
	}
	times := make([][]float64, len(subjects))
	for turn := range turns {
		for i := range doing {
			i = (i + turn) % len(doing) // each is first as often as the others
			if w.garbage {
				runtime.GC()
			}
			begin := processorTime()
			if err := doing[i](turn); err != nil {
				return nil, fmt.Errorf("%s: %w", subjects[i].Name, err)
			}
			times[i] = append(times[i], float64(processorTime()-begin)/float64(w.items))
		}
	}
	out := make([]float64, len(subjects))
	for i, t := range times {
		slices.Sort(t)
		t = t[:max(1, len(t)/10)]
		for _, x := range t {
			out[i] += x / float64(len(t))
		}
	}
	return out, nil
}

// processorTime is what this process has taken of all processors so far, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func workloads() []workload {
	return []workload{
		replacement(1<<14, 16), replacement(1<<17, 16),
		decode(100, 400), decode(1000, 400), decode(10_000, 200), decode(100_000, 20),
		build(10_000_000, 1<<14, 3), build(10_000_000, 1<<17, 3),
	}
}

// pairs are random ones that each version takes: index and checksum are below 2^42 − 11, and the
// checksum is one of the index by the newest version.
func pairs(r *rand.Rand, n int) []Pair {
	out := make([]Pair, n)
	for i := range out {
		out[i] = withContent(r.Uint64N(1<<42-12)+1, r)
	}
	return out
}

func withContent(index uint64, r *rand.Rand) Pair {
	return Pair{index, uint64(rateless.Seal(rateless.Index(index), r.Uint64N(1<<34)))}
}

// changed are pairs of the same indices with other checksums.
func changed(r *rand.Rand, pairs []Pair) []Pair {
	out := make([]Pair, len(pairs))
	for i, p := range pairs {
		for out[i] = withContent(p[0], r); out[i] == p; {
			out[i] = withContent(p[0], r)
		}
	}
	return out
}

// replacement changes pairs of a kept sketch of m cells, 2,048 a turn, of 65,536.
func replacement(m, rounds int) workload {
	const all, some = 1 << 16, 2048
	return workload{
		name: fmt.Sprintf("replacement, M = %d", m), items: some, turns: rounds * all / some,
		begin: func(s Subject) func(int) error {
			r := rand.New(rand.NewPCG(1, 1))
			old := pairs(r, all)
			replace := s.Replacing(old, changed(r, old), m)
			return func(turn int) error {
				from := turn % (all / some) * some
				replace(from, from+some)
				return nil
			}
		},
	}
}

// decode finds d differences beside 10^6 local pairs: a quarter are only theirs, a quarter only
// ours, and half are held in two versions.
func decode(d, turns int) workload {
	return workload{
		name: fmt.Sprintf("decode, a difference, d = %d", d), items: d * max(1, 10_000/d), turns: turns, garbage: true,
		begin: func(s Subject) func(int) error {
			r := rand.New(rand.NewPCG(2, 1))
			common := pairs(r, 1_000_000)
			local := make(map[uint64]uint64, len(common))
			for _, p := range common {
				local[p[0]] = p[1]
			}
			both := common[:d/2]
			theirs := slices.Concat(pairs(r, d/4), changed(r, both))
			decode := s.Decoding(theirs, common[:d-d/4], local, d, d*12/10+100)
			return func(int) error {
				var err error
				for range max(1, 10_000/d) {
					err = cmp.Or(err, decode())
				}
				return err
			}
		},
	}
}

// build sketches n pairs into m cells.
func build(n, m, turns int) workload {
	return workload{
		name: fmt.Sprintf("build of %d, a pair, M = %d", n, m), items: n, turns: turns, garbage: true,
		begin: func(s Subject) func(int) error {
			build := s.Building(pairs(rand.New(rand.NewPCG(3, 1)), n), m)
			return func(int) error { return build() }
		},
	}
}
