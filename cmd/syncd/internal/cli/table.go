package cli

import (
	"strings"
	"text/tabwriter"
)

// table lines up columns.
type table struct {
	a     *app
	text  strings.Builder
	lines *tabwriter.Writer
}

// table begins a table; a heading of empty cells is not printed.
func (a *app) table(head ...string) *table {
	t := &table{a: a}
	t.lines = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	if strings.Join(head, "") != "" {
		t.row(head...)
	}
	return t
}

func (t *table) row(cells ...string) {
	_, _ = t.lines.Write([]byte(strings.Join(cells, "\t") + "\n")) // into memory
}

// after is print below an empty line.
func (t *table) after() {
	t.a.printf("\n")
	t.print()
}

// print writes the table, without spaces at the ends of lines.
func (t *table) print() {
	_ = t.lines.Flush() // into memory
	for line := range strings.Lines(t.text.String()) {
		t.a.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}
