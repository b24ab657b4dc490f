package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/testnet/scenarios"
)

type testnetCmd struct {
	Run  testnetRunCmd  `cmd:"" help:"Run many simulated nodes through faults, and check every promise."`
	Ls   testnetLsCmd   `cmd:"" help:"List the built-in scenarios."`
	Show testnetShowCmd `cmd:"" help:"Print the text of a scenario."`
}

// scenarioNames are those of the built-in scenarios.
func scenarioNames() (names []string) {
	for _, s := range scenarios.All() {
		names = append(names, s.Name)
	}
	return names
}

type testnetLsCmd struct{}

func (testnetLsCmd) Help() string {
	return `Example:
    syncd testnet ls`
}

// Run lists the scenarios that tell a story.
func (testnetLsCmd) Run(a *app) error {
	if a.json() {
		type line struct {
			Name  string `json:"name"`
			Title string `json:"title"`
		}
		var all []line
		for _, s := range scenarios.All() {
			all = append(all, line{s.Name, s.Title})
		}
		return a.printJSON(all)
	}
	t := a.table("scenario", "what happens")
	for _, s := range scenarios.All() {
		t.row(s.Name, s.Title)
	}
	return t.print()
}

type testnetShowCmd struct {
	Scenario string `arg:"" help:"A built-in scenario, or a file." complete:"scenarios"`
}

func (testnetShowCmd) Help() string {
	return `The text is what --scenario of testnet run reads, and a start for a scenario of your own.

Example:
    syncd testnet show disk-full > mine.txt; syncd testnet run --scenario mine.txt`
}

// Run prints a scenario.
func (c testnetShowCmd) Run(a *app) error {
	s, err := a.scenario(c.Scenario)
	if err != nil {
		return fmt.Errorf("testnet show: %w", err)
	}
	if a.json() {
		return a.printJSON(map[string]string{"name": s.Name, "title": s.Title, "text": s.Text})
	}
	return a.printf("%s", s.Text)
}

// maxScenario bounds the text of a scenario, in bytes; one that long would say
// so when it is parsed.
const maxScenario = 64 << 20

// scenario finds a built-in scenario or reads one from a file; "-" is standard
// input. What names a built-in one is never a file, so that a command does the
// same in every folder: ./NAME is.
func (a *app) scenario(name string) (scenarios.Scenario, error) {
	if s, ok := scenarios.Find(name); ok {
		return s, nil
	}
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return scenarios.Scenario{}, noScenario(name)
		case err != nil:
			return scenarios.Scenario{}, fmt.Errorf("read the scenario: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScenario))
	if err != nil {
		return scenarios.Scenario{}, fmt.Errorf("read the scenario: %w", err)
	}
	s := scenarios.Scenario{Name: name, Text: string(text)}
	if first, _, _ := strings.Cut(s.Text, "\n"); strings.HasPrefix(first, "#") {
		s.Title = strings.TrimSpace(first[1:])
	}
	return s, nil
}

var errNoScenario = fmt.Errorf("no such scenario: %w", peer.ErrNotFound)

// noScenario says that no scenario has that name, and which names are near.
func noScenario(name string) error {
	hint := "syncd testnet ls lists them"
	if near := nearest(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "? " + hint
	}
	return &marked{fmt.Sprintf("there is no scenario and no file %q; %s", name, hint), errNoScenario}
}

// nearest returns at most three built-in scenarios with similar names, the most
// similar first.
func nearest(name string) []string {
	type near struct {
		name string
		far  int
	}
	var all []near
	for _, s := range scenarioNames() {
		far := edits(name, s)
		if name != "" && strings.Contains(s, name) {
			far = 0
		}
		if far <= max(2, len(s)/3) {
			all = append(all, near{s, far})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.far - b.far })
	var names []string
	for _, n := range all[:min(len(all), 3)] {
		names = append(names, n.name)
	}
	return names
}

// edits is the Levenshtein distance of two words: how many letters must be put
// in, left out or changed to make one of the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// marked is an error of a kind, with a text of its own.
type marked struct {
	text string
	kind error
}

func (m *marked) Error() string { return m.text }
func (m *marked) Unwrap() error { return m.kind }
