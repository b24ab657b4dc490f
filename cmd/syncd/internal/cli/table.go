package cli

import (
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/lipgloss"

	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

// table lines up columns. Its heading is bold on a terminal.
type table struct {
	a      *app
	titled bool
	text   strings.Builder
	lines  *tabwriter.Writer
}

// table begins a table; a heading of empty cells is not printed.
func (a *app) table(head ...string) *table {
	t := &table{a: a}
	t.lines = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	if t.titled = strings.Join(head, "") != ""; t.titled {
		t.row(head...)
	}
	return t
}

func (t *table) row(cells ...string) {
	_, _ = t.lines.Write([]byte(strings.Join(cells, "\t") + "\n")) // into memory
}

// after is print below an empty line.
func (t *table) after() error {
	if err := t.a.printf("\n"); err != nil {
		return err
	}
	return t.print()
}

// print writes the table, without spaces at the ends of lines.
func (t *table) print() error {
	if err := t.lines.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.titled && progress.IsTerminal(t.a.stdout) {
			line = lipgloss.NewStyle().Bold(true).Render(line)
		}
		t.titled = false
		if err := t.a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
