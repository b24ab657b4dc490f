package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"

	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

// table lines up columns. Its heading is bold on a terminal.
type table struct {
	a    *app
	head []string
	rows [][]string
}

func (a *app) table(head ...string) *table { return &table{a: a, head: head} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table; without a heading if all of that is empty.
func (t *table) print() error {
	width := make([]int, len(t.head))
	titled := false
	for i, h := range t.head {
		width[i] = utf8.RuneCountInString(h)
		titled = titled || h != ""
	}
	for _, r := range t.rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	if titled {
		line := pad(t.head, width)
		if progress.IsTerminal(t.a.stdout) {
			line = lipgloss.NewStyle().Bold(true).Render(line)
		}
		if err := t.a.printf("%s\n", line); err != nil {
			return err
		}
	}
	for _, r := range t.rows {
		if err := t.a.printf("%s\n", pad(r, width)); err != nil {
			return err
		}
	}
	return nil
}

func pad(cells []string, width []int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}
