package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// report is all that a run found. What was not asked for is empty.
type report struct {
	Seed    uint64      `json:"seed"`
	Factor  float64     `json:"trials_factor"`
	Law     string      `json:"law"` // the shipped law, or the given one
	Decoder []row       `json:"decoder,omitempty"`
	Laws    []row       `json:"laws,omitempty"`
	Shares  []share     `json:"shares,omitempty"`
	Pairs   []pairBound `json:"two_differences,omitempty"`
	Few     []few       `json:"few_differences,omitempty"`
}

func (r *report) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// text prints Markdown.
func (r *report) text(out io.Writer) {
	fmt.Fprintf(out, "Seed %d, trials × %g, law %s.\n", r.Seed, r.Factor, code(r.Law))
	if len(r.Decoder) > 0 {
		fmt.Fprintf(out, "\n## The decoder of iblt, by what the differences are\n\n")
		table(out, r.Decoder, func(r row) string { return string(r.Records) })
	}
	if len(r.Laws) > 0 {
		fmt.Fprintf(out, "\n## Laws, simulated\n\n")
		table(out, r.Laws, func(r row) string { return r.Law })
	}
	if len(r.Shares) > 0 {
		fmt.Fprintf(out, "\n## %d differences out of %d cells\n\n| | trials | decoded, %% | 95 %% interval, %% |\n|---|---|---|---|\n", firstDifferences, firstCells)
		for _, s := range r.Shares {
			low, high := s.interval()
			fmt.Fprintf(out, "| %s | %s | %.3f | %.3f … %.3f |\n", s.Law, thousands(s.Trials), 100*float64(s.Good)/float64(s.Trials), 100*low, 100*high)
		}
	}
	if len(r.Pairs) > 0 {
		fmt.Fprintf(out, "\n## Two differences: chance that n cells do not suffice, %%\n\n")
		fmt.Fprintf(out, "| n | cells a difference | any law, at least | blocks | joined | regular |\n|---|---|---|---|---|---|\n")
		for _, p := range r.Pairs {
			fmt.Fprintf(out, "| %d | %.1f | %.3f | %.3f | %.3f | %.3f |\n", p.Cells, float64(p.Cells)/2, 100*p.AnyLaw, 100*p.Shipped, 100*p.Joined, 100*p.Regular)
		}
	}
	if len(r.Few) > 0 {
		fmt.Fprintf(out, "\n## Few differences: 99th percentile in cells a difference, and mean; %s trials each\n\n", thousands(r.Few[0].Trials))
		fmt.Fprintf(out, "| differences | any law, at least | blocks | mean | best single α | its 99th | mean |\n|---|---|---|---|---|---|---|\n")
		for _, o := range r.Few {
			fmt.Fprintf(out, "| %d | %.2f | %.2f | %.3f | %.2f | %.2f | %.3f |\n", o.Differences, o.AnyLaw, o.Shipped, o.ShippedMean, o.Alpha, o.Best, o.BestMean)
		}
	}
}

// table prints rows, of which those with the same number of differences stand
// beside one another.
func table(out io.Writer, rows []row, name func(row) string) {
	groups := 0
	for groups < len(rows) && rows[groups].Differences == rows[0].Differences {
		groups++
	}
	fmt.Fprint(out, "| differences | trials |")
	for _, r := range rows[:groups] {
		fmt.Fprintf(out, " %s: mean | 95th | 99th |", name(r))
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat("---|", 2+3*groups))
	for i, r := range rows {
		if i%groups == 0 {
			fmt.Fprintf(out, "| %s | %s |", thousands(r.Differences), thousands(r.Trials))
		}
		fmt.Fprintf(out, " %.4f", r.Mean)
		if r.P95 != 0 { // enough trials for an interval
			fmt.Fprintf(out, " ± %.4f", r.Half)
		}
		fmt.Fprintf(out, " | %s | %s |", known(r.P95), known(r.P99))
		if i%groups == groups-1 {
			fmt.Fprintln(out)
		}
	}
}

// known writes a percentile, if there is one.
func known(p float64) string {
	if p == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", p)
}

// code quotes a text with bars, which would be a table's.
func code(s string) string { return "`" + s + "`" }

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
