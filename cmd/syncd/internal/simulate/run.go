package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/testnet"
)

type runCmd struct {
	Nodes    int           `help:"How many nodes. 0: as many as the scenario has, or as are drawn." default:"0" placeholder:"N"`
	Seed     uint64        `help:"Decides all that is random. 0: the scenario's own; without one, 0." default:"0"`
	Scenario string        `help:"What happens: a built-in scenario (syncd-testnet ls), a file, or - for standard input. Without it, the seed decides." placeholder:"FILE|NAME"`
	Profile  string        `help:"What goes wrong where the seed decides: calm, rough, clocks, disks, members, ranges, live, shards, writer or mixed." enum:"calm,rough,clocks,disks,members,ranges,live,shards,writer,mixed" default:"mixed"`
	Runs     int           `help:"How many runs, each with the next seed." default:"1" placeholder:"K"`
	Plot     string        `help:"Draw the run to this file, as SVG." placeholder:"FILE"`
	Tape     string        `help:"Write the run, all that was drawn with it, to this file, as a scenario. Of several runs, the first that fails." placeholder:"FILE"`
	Shrink   time.Duration `help:"If the run fails, spend up to this long on finding a smaller one that fails alike, for --tape." default:"0s"`
}

func (runCmd) Help() string {
	return `Runs nodes in this process under simulated time, with the program's own sync and with simulated disks, links and clocks, which fail. A run is decided by its scenario and seed alone: it does the same every time, on every machine. Afterwards everything is healed, the nodes become equal, and a checker looks at all that was asked, answered and seen.

Exit code 0 only if the checker finds nothing and the run ends as its scenario expects, 9 if not, 1 if the scenario cannot be read, 4 if no scenario has that name. It needs no daemon and writes only the files that it is told to. With --runs, -o json prints a list.

Examples:
    syncd-testnet run
    syncd-testnet run --scenario partition-and-heal --plot run.svg
    syncd-testnet run --seed 7 --nodes 20 --profile rough -o json | jq .trace_hash
    syncd-testnet run --runs 1000 --shrink 1m --tape failed.txt
    syncd-testnet run --scenario failed.txt`
}

// maxRuns bounds the runs of one command.
const maxRuns = 1_000_000

func (c *runCmd) check() error {
	switch {
	case c.Nodes < 0:
		return problem.Usage("run: --nodes %d: want a number from 1 on, or 0 for the scenario's own", c.Nodes)
	case c.Runs < 1 || c.Runs > maxRuns:
		return problem.Usage("run: --runs %d: want 1 to %d", c.Runs, maxRuns)
	case c.Shrink < 0:
		return problem.Usage("run: --shrink: %s is negative", c.Shrink)
	case c.Shrink > 0 && c.Tape == "":
		return problem.Usage("run: --shrink needs --tape FILE, to write the smaller run to")
	case c.Plot != "" && c.Runs > 1:
		return problem.Usage("run: --plot draws one run, and --runs %d are wanted; draw the one of interest with --seed", c.Runs)
	}
	for _, path := range []string{c.Plot, c.Tape} { // now, rather than after a long run
		if info, err := os.Stat(filepath.Dir(path)); path != "" && (err != nil || !info.IsDir()) {
			return fmt.Errorf("run: write %s: there is no folder %s: %w", path, filepath.Dir(path), fs.ErrNotExist)
		}
	}
	return nil
}

// Run runs a scenario, once or with many seeds.
func (c runCmd) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	config := testnet.Config{Nodes: c.Nodes, Seed: c.Seed, Profile: c.Profile}
	title := ""
	if c.Scenario != "" {
		s, err := p.scenario(c.Scenario)
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		title, config.Scenario = s.Title, s.Text+"\n" // an empty text is a scenario, too
	}
	return c.runs(ctx, p, config, title)
}

// one does one run.
func (c *runCmd) one(ctx context.Context, config testnet.Config) (testnet.Result, error) {
	res, err := testnet.Run(ctx, config)
	if res.Scenario == "" {
		res.Scenario = c.Scenario
	}
	if err == nil {
		return res, nil
	}
	what := "run: "
	if c.Scenario != "" {
		what += c.Scenario + ": "
	}
	said := &marked{what + strings.TrimPrefix(err.Error(), "testnet: "), err}
	switch {
	case errors.Is(err, testnet.ErrScenario) && c.Scenario == "":
		return res, problem.Usage("%w", said)
	case errors.Is(err, testnet.ErrScenario):
		return res, problem.Malformed(said)
	}
	return res, said
}

// outcome is a result as it goes out as JSON.
type outcome struct {
	testnet.Result
	Passed bool   `json:"passed"`
	Replay string `json:"replay"`
}

func (c *runCmd) outcome(res *testnet.Result) outcome {
	return outcome{*res, res.Passed(), c.replay(res)}
}

// replay is the command that does a run again.
func (c *runCmd) replay(res *testnet.Result) string {
	words := []string{"syncd-testnet run"}
	if c.Scenario != "" {
		words = append(words, "--scenario "+advice.Word(c.Scenario))
	}
	if c.Nodes != 0 {
		words = append(words, fmt.Sprintf("--nodes %d", c.Nodes))
	}
	if res.Seed != 0 && (c.Scenario == "" || c.Seed != 0 || c.Runs > 1) {
		words = append(words, fmt.Sprintf("--seed %d", res.Seed))
	}
	if c.Scenario == "" && c.Profile != "mixed" {
		words = append(words, "--profile "+c.Profile)
	}
	return strings.Join(words, " ")
}

// failure is the error of a run that failed, for standard error.
func (c *runCmd) failure(res *testnet.Result) error {
	return &marked{fmt.Sprintf("run: %s: %s; run it again with: %s", runName(res), strings.Join(res.Unmet, ", "), c.replay(res)), problem.ErrDiffers}
}

// runName says which run it was.
func runName(res *testnet.Result) string {
	if own := fmt.Sprintf("seed-%d", res.Seed); res.Scenario == own {
		return fmt.Sprintf("seed %d", res.Seed)
	}
	return fmt.Sprintf("%s, seed %d", res.Scenario, res.Seed)
}

// save writes the files that were asked for. It returns what is to be said of
// the tape.
func (c *runCmd) save(ctx context.Context, p *program, res *testnet.Result) (string, error) {
	if c.Plot != "" {
		picture, err := res.SVG()
		if err == nil {
			err = os.WriteFile(c.Plot, picture, 0o666)
		}
		if err != nil {
			return "", fmt.Errorf("run: draw the run: %w", err)
		}
	}
	if c.Tape == "" {
		return "", nil
	}
	tape := res.Tape()
	said := fmt.Sprintf("%s, in %s", eventsOf(tape), c.Tape)
	if !res.Passed() && c.Shrink > 0 {
		small, err := c.shrink(ctx, p, res)
		switch {
		case errors.Is(err, testnet.ErrNothingBroken):
			if !p.Quiet && !p.json() {
				_, _ = fmt.Fprintf(p.stderr, "the run stays as it is: %v\n", err)
			}
		case err != nil:
			return "", fmt.Errorf("run: make it smaller: %w", err)
		default:
			said = fmt.Sprintf("%s of %d nodes, shrunk from %s of %d, in %s",
				eventsOf(small.Tape()), small.Nodes, eventsOf(tape), res.Nodes, c.Tape)
			tape = fmt.Sprintf("# Found by %s, and shrunk.\n# It failed so: %s.\n%s", c.replay(res), strings.Join(small.Unmet, "; "), small.Tape())
		}
	}
	if err := os.WriteFile(c.Tape, []byte(tape), 0o666); err != nil {
		return "", fmt.Errorf("run: write the tape: %w", err)
	}
	return said, nil
}

// shrink looks for a smaller run for as long as it may.
func (c *runCmd) shrink(ctx context.Context, p *program, res *testnet.Result) (testnet.Result, error) {
	bar := p.bars().Spin("a smaller run that fails alike")
	defer bar.Done()
	search, cancel := context.WithTimeout(ctx, c.Shrink)
	defer cancel()
	small, err := res.Shrink(search)
	if ctx.Err() != nil {
		return small, context.Cause(ctx)
	}
	return small, err
}

// eventsOf counts the events of a tape.
func eventsOf(tape string) string {
	n := strings.Count("\n"+tape, "\nat ")
	if n == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", n)
}

// maxBroken is how many broken promises are printed; one fault can break a
// promise for every key.
const maxBroken = 10

// print prints a run as a table, and below it what is wrong and what to do.
func (c *runCmd) print(p *program, res *testnet.Result, title, saved string) error {
	t := p.table()
	name := runName(res)
	if title != "" {
		name += ": " + title
	}
	t.row("run", name)
	t.row("nodes", fmt.Sprint(res.Nodes))
	t.row("time", fmt.Sprintf("%s for the nodes, %s here", virtual(res.VirtualMS), time.Duration(res.WallMS*float64(time.Millisecond)).Round(100*time.Microsecond)))
	t.row("happened", fmt.Sprintf("%d syncs, %d frames, %d events of the simulator", res.Sessions, res.Frames, res.Events))
	if len(res.Refused) > 0 {
		t.row("refused", counts(res.Refused))
	}
	for _, n := range res.Damaged {
		t.row("damaged", fmt.Sprintf("node %d found its data damaged, and stays down", n))
	}
	if res.Converged {
		t.row("converged", fmt.Sprintf("yes, %s after all was healed", virtual(res.SettledMS)))
	} else {
		t.row("converged", "NO")
	}
	if len(res.Violations) == 0 {
		t.row("promises", "all kept")
	} else {
		t.row("promises", fmt.Sprintf("%d BROKEN", len(res.Violations)))
	}
	t.row("trace", *res.TraceHash)
	if saved != "" {
		t.row("tape", saved)
	}
	if c.Plot != "" {
		t.row("plot", c.Plot)
	}
	if res.Passed() {
		return t.Flush()
	}
	t.row("", "")
	for i, v := range res.Violations {
		if i == maxBroken {
			t.row("broken", fmt.Sprintf("and %d more; -o json prints all", len(res.Violations)-i))
			break
		}
		t.row("broken", v.String())
	}
	for _, u := range res.Unmet {
		t.row("failed", u)
	}
	again := c.replay(res)
	t.row("again", again)
	if c.Plot == "" {
		t.row("see it", again+" --plot run.svg")
	}
	if len(res.Violations) > 0 && c.Shrink == 0 {
		t.row("smaller", again+" --shrink 1m --tape small.txt")
	}
	other := slices.ContainsFunc(res.Violations, func(v testnet.Violation) bool { return v.Rule != "equal" })
	switch {
	case !res.Converged && !other:
		t.row("or", "allow the nodes more time: settle, in the scenario")
	case len(res.Violations) == 0:
		t.row("or", "change what the scenario expects")
	default:
		t.row("report", "a broken promise is a fault of syncd; the file of --tape holds all that is needed to see it")
	}
	return t.Flush()
}

// counts are numbers by name.
func counts(m map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(all, ", ")
}

// virtual is a virtual time.
func virtual(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
