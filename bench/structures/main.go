// Command structures measures which structure answers a key's value in the least space
// and time, where a stranger may be taken for a key at a given rate:
//
//	go -C bench run ./structures                              # six points, some minutes, 2 GB
//	go -C bench run ./structures --points 1000000:256:8       # keys, values, −log2 of the rate
//	go -C bench run ./structures --json                       # all repeats
//	go -C bench run ./structures --out ../docs                # draws the charts there, too
//
// A point is n keys with θ values, all alike frequent, and a rate α of false positives.
// Beside each other, in turns, are the B-field, the bumped ribbon with fingerprints, the
// cuckoo table of fingerprints, the exact cuckoo map, a Go map, a filter for each value
// (Bloom, ribbon), and a perfect hash function with an array of values and fingerprints.
//
// Space is what the heap grows by. Times are the processor's, of one goroutine that looks
// one key up after the other, or in batches of 256; medians of the repeats. Each key is
// asked for once and must answer its value; strangers must be found at the planned rate.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "structures:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	points  []point
	repeats int
	seed    uint64
	json    bool
	out     string
	sweep   int // keys of the chart of space over α
}

func parseOptions(args []string, log io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("structures", flag.ContinueOnError)
	flags.SetOutput(log)
	list := flags.String("points", defaultPoints, "points, each keys:values:−log2 of the rate of false positives, with commas between")
	flags.IntVar(&o.repeats, "repeats", 5, "repeats, of which medians are told")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of keys, values and structures")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	flags.StringVar(&o.out, "out", "", "folder to write the charts to; without it no chart is drawn")
	flags.IntVar(&o.sweep, "sweep", 1_000_000, "keys of the chart of space over the rate")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.repeats < 1 || o.repeats > 1000 || o.sweep < leastKeys || o.sweep > mostKeys {
		return o, fmt.Errorf("read the command line: want -repeats 1 to 1000, -sweep %d to %d, and no arguments", leastKeys, mostKeys)
	}
	o.points, err = parsePoints(*list)
	return o, err
}

func run(args []string, out, log io.Writer) error {
	o, err := parseOptions(args, log)
	if err != nil {
		return err
	}
	var r report
	for _, p := range o.points {
		fmt.Fprintf(log, "%v: %d repeats\n", p, o.repeats)
		rows, err := measure(p, o.repeats, o.seed)
		if err != nil {
			return fmt.Errorf("measure %v: %w", p, err)
		}
		r.Points = append(r.Points, measured{Point: p, Rows: rows})
		if !o.json {
			r.Points[len(r.Points)-1].print(out)
		}
	}
	if o.out != "" {
		if r.Space, err = sweep(o.sweep, o.seed); err != nil {
			return err
		}
		pictures, err := r.charts()
		if err != nil {
			return err
		}
		for name, picture := range pictures {
			if err := os.WriteFile(filepath.Join(o.out, name), picture, 0o640); err != nil {
				return err
			}
		}
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "\t")
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return r.fault()
}
