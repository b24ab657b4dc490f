// Command loads measures how full cuckoo tables get and what the last insertions
// cost:
//
//	go -C bench run ./loads                 # minutes
//	go -C bench run ./loads -trials 3       # fewer trials a shape
//	go -C bench run ./loads -plots ../docs  # writes the chart there
//
// It prints Markdown: for each number H of hash functions and B of slots a
// bucket, the load at which the first insertion found no room, beside theory;
// and the buckets searched and entries moved an insertion against 1/ε, where ε
// is how far the load is below the limit. What is measured is cuckoo.Table with
// fingerprints of some 30 bits.
//
// Each trial is drawn from a seed of its own, so that a run with the same flags
// prints the same figures on any number of cores.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "loads:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	trials int
	slots  int
	seed   uint64
	plots  string
}

func run(args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("loads", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.trials, "trials", 20, "trials a shape")
	flags.IntVar(&o.slots, "slots", 1<<18, "slots of each table, about")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all trials")
	flags.StringVar(&o.plots, "plots", "", "folder to write the chart to; without it no chart is drawn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.trials < 2 || o.slots < 1<<12 || o.slots > 1<<28 {
		return fmt.Errorf("read the command line: want -trials 2 or more and -slots 4096 to 2^28, and no arguments")
	}
	loads, err := o.loads()
	if err != nil {
		return err
	}
	printLoads(out, o, loads)
	costs, err := o.costs()
	if err != nil {
		return err
	}
	printCosts(out, o, costs)
	if o.plots == "" {
		return nil
	}
	picture, err := chart(costs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.plots, "cuckoo-insertion.svg"), picture, 0o640)
}
