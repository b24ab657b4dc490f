package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "degrees:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	factor       float64
	seed         uint64
	only         string
	plots        string
	form         string
	given        string
	share, bound bool
	search       int
}

func parse(args []string, log io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("degrees", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Float64Var(&o.factor, "trials", 1, "multiply the numbers of trials")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all trials")
	flags.StringVar(&o.only, "only", "", "measure these numbers of differences alone, separated by commas")
	flags.StringVar(&o.plots, "plots", "", "folder to write the charts to; without it no chart is drawn")
	flags.StringVar(&o.form, "o", "text", "form of the output: text or json")
	flags.StringVar(&o.given, "law", "", "simulate another law, such as "+shipped.String())
	flags.BoolVar(&o.share, "share", false, fmt.Sprintf("measure how often %d differences come out of %d cells, and nothing else", firstDifferences, firstCells))
	flags.IntVar(&o.search, "search", 0, "climb from the shipped law, or that of --law, to better ones by so many attempts, and nothing else")
	flags.BoolVar(&o.bound, "bound", false, "print what no law can better, and nothing else")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("read the command line: %q is no flag", flags.Arg(0))
	case !(o.factor > 0 && o.factor <= 1e4):
		return o, fmt.Errorf("read --trials: %v is no factor above 0 and up to 10,000", o.factor)
	case o.form != "text" && o.form != "json":
		return o, fmt.Errorf("read -o: %q is neither text nor json", o.form)
	case o.search < 0 || o.search > 0 && (o.share || o.bound || o.plots != ""):
		return o, fmt.Errorf("read --search: it takes a number of attempts, and no --share, --bound or --plots")
	case o.given != "" && (o.bound || o.plots != ""):
		return o, fmt.Errorf("read --law: a given law has no --bound and no --plots")
	case o.plots != "" && (o.share || o.bound):
		return o, fmt.Errorf("read --plots: there are no charts of --share and --bound")
	}
	if o.plots != "" { // now: a run may take half an hour
		if err := os.MkdirAll(o.plots, 0o750); err != nil {
			return o, fmt.Errorf("make the folder for the charts: %w", err)
		}
	}
	return o, nil
}

// parseSizes reads --only.
func parseSizes(only string) ([]int, error) {
	if only == "" {
		return sizes, nil
	}
	var ds []int
	for _, s := range strings.Split(only, ",") {
		d, err := strconv.Atoi(s)
		if err != nil || d < 1 || d > 10_000_000 {
			return nil, fmt.Errorf("read --only: %q is no number of differences from 1 to 10,000,000", s)
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// run is the command; it names each experiment on log as it begins.
func run(args []string, out, log io.Writer) error {
	o, err := parse(args, log)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ds, err := parseSizes(o.only)
	if err != nil {
		return err
	}
	laws, given := laws, o.given != ""
	if given {
		law, err := parseLaw(o.given)
		if err != nil {
			return err
		}
		laws = []named{{lawGiven, law}}
	}
	r := &runner{seed: o.seed, factor: o.factor, log: log}
	if o.search > 0 {
		fmt.Fprintln(out, r.search(laws[0].law.(*blocks), o.search))
		return nil
	}
	found := &report{Seed: o.seed, Factor: o.factor, Law: fmt.Sprint(laws[0].law)}
	all := !o.share && !o.bound
	if all && !given {
		if found.Decoder, err = r.real(ds); err != nil {
			return err
		}
	}
	if all {
		found.Laws = r.simulated(laws, ds)
	}
	if o.share || all && o.only == "" {
		if found.Shares, err = r.shares(laws, !given); err != nil {
			return err
		}
	}
	if o.bound || all && o.only == "" && !given {
		found.Pairs, found.Few = pairs(), r.sweep()
	}
	if o.form == "json" {
		err = found.json(out)
	} else {
		found.text(out)
	}
	if err != nil || o.plots == "" {
		return err
	}
	return write(found, o.plots, log)
}

// write draws the charts into a folder.
func write(found *report, folder string, log io.Writer) error {
	charts, err := found.charts()
	if err != nil {
		return err
	}
	for name, picture := range charts {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, picture, 0o600); err != nil {
			return fmt.Errorf("write a chart: %w", err)
		}
		fmt.Fprintln(log, "wrote", path)
	}
	return nil
}
