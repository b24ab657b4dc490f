package simulate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/testnet/scenarios"
)

type lsCmd struct{}

func (lsCmd) Help() string {
	return `Example:
    syncd-testnet ls`
}

// Run lists the scenarios that tell a story.
func (lsCmd) Run(p *program) error {
	all := scenarios.All()
	t := p.table()
	t.row("scenario", "what happens")
	for i := range all {
		t.row(all[i].Name, all[i].Title)
		all[i].Text = ""
	}
	if p.json() {
		return p.printJSON(all)
	}
	return t.Flush()
}

type showCmd struct {
	Scenario string `arg:"" help:"A built-in scenario, or a file."`
}

func (showCmd) Help() string {
	return `The text is what --scenario of run reads, and a start for a scenario of your own.

Example:
    syncd-testnet show disk-full > mine.txt; syncd-testnet run --scenario mine.txt`
}

// Run prints a scenario.
func (c showCmd) Run(p *program) error {
	s, err := p.scenario(c.Scenario)
	if err != nil {
		return fmt.Errorf("show: %w", err)
	}
	if p.json() {
		return p.printJSON(s)
	}
	_, err = io.WriteString(p.stdout, s.Text)
	return err
}

// maxScenario bounds the text of a scenario, in bytes; one that long would say
// so when it is parsed.
const maxScenario = 64 << 20

// scenario finds a built-in scenario or reads one from a file; "-" is standard
// input. What names a built-in one is never a file, so that a command does the
// same in every folder: ./NAME is.
func (p *program) scenario(name string) (scenarios.Scenario, error) {
	if s, ok := scenarios.Find(name); ok {
		return s, nil
	}
	in := p.stdin
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
	return scenarios.Of(name, string(text)), nil
}

// noScenario says that no scenario has that name, and which name is near.
func noScenario(name string) error {
	hint := "syncd-testnet ls lists them"
	if near := nearest(name); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return &marked{fmt.Sprintf("there is no scenario and no file %q; %s", name, hint), peer.ErrNotFound}
}

// nearest is the built-in scenario whose name is most similar, or empty.
func nearest(name string) (near string) {
	least := len(name)
	for _, s := range scenarios.All() {
		far := advice.Edits(name, s.Name)
		if strings.HasPrefix(s.Name, name) {
			far = 0
		}
		if far < least && far <= max(2, len(s.Name)/3) {
			near, least = s.Name, far
		}
	}
	return near
}

// marked is an error of a kind, with a text of its own.
type marked struct {
	text string
	kind error
}

func (m *marked) Error() string { return m.text }
func (m *marked) Unwrap() error { return m.kind }
