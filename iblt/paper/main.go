package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "paper:", err)
		os.Exit(1)
	}
}

// run is the command.
func run(args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("paper", flag.ContinueOnError)
	flags.SetOutput(log)
	trials := flags.Int("trials", 20_000, "trials of each setting with 10,000 keys")
	large := flags.Int("large", 0, "trials of each setting with 100,000 keys (default: a twentieth of --trials; negative: leave them out)")
	seed := flags.Uint64("seed", 1, "seed of all trials")
	only := flags.String("only", "", "run one part alone: "+strings.Join(parts, ", "))
	plots := flags.String("plots", "", "folder to write the plots of Figures 1 and 2 to; without it no plot is drawn")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *large == 0 {
		*large = max(1, *trials/20)
	}
	if *trials < 1 || flags.NArg() > 0 {
		return fmt.Errorf("run simulations: trials must be positive, and there are no arguments besides flags")
	}
	if *only != "" && !slices.Contains(parts, *only) {
		return fmt.Errorf("run part %q alone: the parts are %s", *only, strings.Join(parts, ", "))
	}
	if *plots != "" { // now: a run may take half an hour
		if err := os.MkdirAll(*plots, 0o750); err != nil {
			return fmt.Errorf("make the folder for the plots: %w", err)
		}
	}
	r := &report{out: out, trials: *trials, large: *large, seed: *seed, only: *only, plots: map[string]*chart{}}
	r.printf("Seed %d; %d trials with 10,000 keys, %d with 100,000; %d hash functions; %d cores.\n\n", *seed, *trials, *large, hashes, runtime.GOMAXPROCS(0))
	if err := r.all(); err != nil || *plots == "" {
		return err
	}
	for name, p := range r.plots {
		path := filepath.Join(*plots, name)
		picture, err := p.SVG()
		if err == nil {
			err = os.WriteFile(path, picture, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
		fmt.Fprintln(log, "wrote", path)
	}
	return nil
}
