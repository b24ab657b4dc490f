package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s is %v, not %v", what, got, want)
	}
}

func TestStatistics(t *testing.T) {
	cells := make([]int, 200) // 200 … 1
	for i := range cells {
		cells[i] = 200 - i
	}
	s := summarize(cells, 2)
	near(t, "mean", s.Mean, 50.25, 1e-9)
	near(t, "half an interval", s.Half, 1.96*math.Sqrt(200*201.0/12/200)/2, 1e-9)
	near(t, "95th percentile", s.P95, 95, 0)
	near(t, "99th percentile", s.P99, 99, 0)
	near(t, "largest", s.Max, 100, 0)
	if cells[0] != 200 {
		t.Error("the sample was sorted in place")
	}
	if s := summarize(cells[:99], 2); s.P95 == 0 || s.P99 != 0 {
		t.Errorf("99 trials: percentiles %v and %v", s.P95, s.P99)
	}
	if s := summarize(cells[:19], 2); s.P95 != 0 || s.Half != 0 {
		t.Errorf("19 trials: 95th percentile %v, interval ± %v", s.P95, s.Half)
	}
	// Wilson's interval for 0 and 5 of 10, as published (Newcombe 1998).
	low, high := share{Good: 0, Trials: 10}.interval()
	near(t, "low end of 0 in 10", low, 0, 1e-12)
	near(t, "high end of 0 in 10", high, 0.2775, 1e-4)
	low, high = share{Good: 5, Trials: 10}.interval()
	near(t, "low end of 5 in 10", low, 0.2366, 1e-4)
	near(t, "high end of 5 in 10", high, 0.7634, 1e-4)
}

// TestBounds: by hand, and two differences in simulation.
func TestBounds(t *testing.T) {
	near(t, "visit to cell 1", visiting(.5, 1), 1-1.5*1.5/(2.5*2.5), 1e-12)
	near(t, "two alike in two cells", regular.alike(2), .64*.64+.36*.36, 1e-12)
	near(t, "two alike in one cell", shipped.alike(1), 1, 1e-12)
	near(t, "collision of two in 7 cells", collision(2, 7), 1.0/64, 1e-12)
	near(t, "collision of three in 3 cells", collision(3, 3), 1-3.0/4*2/4, 1e-12)
	near(t, "collision of three in 2 cells", collision(3, 2), 1, 0)
	near(t, "cells for 1 %", float64(least(func(n int) float64 { return collision(2, n) })), 8, 0)
	const trials = 20_000
	for name, law := range compared {
		s := &simulator{law: law}
		cells := make([]int, trials)
		for i := range cells {
			cells[i] = s.trial(2, seedOf(8, uint64(i)))
		}
		for n := 1; n <= 12; n++ {
			failed := 0.0
			for _, c := range cells {
				if c > n {
					failed++
				}
			}
			p := law.alike(n)
			if p < collision(2, n)-1e-12 {
				t.Errorf("%s: %d cells fail with %v, below the bound", name, n, p)
			}
			if z := deviation(failed, trials*p, trials*p*(1-p)+1e-9); z > never {
				t.Errorf("%s: %d cells do not suffice in %v trials, want %.1f: %.1f deviations", name, n, failed, trials*p, z)
			}
		}
	}
}

// TestCommand runs the command in short, and reads what it writes.
func TestCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by it")
	var out, log bytes.Buffer
	if err := run([]string{"--trials", "0.005", "--only", "20,30", "--plots", dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	tables := strings.Split(out.String(), "\n## ")
	if len(tables) != 3 {
		t.Fatalf("%d tables, want 2:\n%s", len(tables)-1, &out)
	}
	for _, table := range tables[1:] {
		lines := strings.Split(strings.TrimSpace(table), "\n")[2:]
		if len(lines) != 4 || !strings.HasPrefix(lines[2], "| 20 | 100 | 1.") || !strings.HasPrefix(lines[3], "| 30 | 100 | 1.") {
			t.Errorf("not a table of 20 and 30 differences:\n%s", table)
		}
		for _, line := range lines {
			if strings.Count(line, "|") != 12 {
				t.Errorf("not 11 columns: %s", line)
			}
		}
	}
	if !strings.Contains(log.String(), "simulation, blocks, d = 30: 100 trials\n") {
		t.Errorf("the log is %q", &log)
	}
	for _, name := range []string{"iblt-cells-mean.svg", "iblt-cells-99th.svg"} {
		picture, err := os.ReadFile(filepath.Join(dir, name))
		var svg struct{}
		if err != nil || xml.Unmarshal(picture, &svg) != nil || !bytes.Contains(picture, []byte("regular")) {
			t.Errorf("%s: %v %s", name, err, picture)
		}
	}
}

func TestCommandJSON(t *testing.T) {
	var out, log bytes.Buffer
	read := func(args ...string) (r report) {
		t.Helper()
		out.Reset()
		if err := run(append(args, "-o", "json", "--trials", "0.005"), &out, &log); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		return r
	}
	if r := read("--only", "5"); len(r.Decoder) != 3 || len(r.Laws) != 3 || len(r.Shares) != 0 || r.Decoder[1].Records != mismatched || r.Laws[0].P99 < 1 {
		t.Errorf("%s", &out)
	}
	if r := read("--only", "5", "--law", "56|.53,.6|256:67"); len(r.Decoder) != 0 || len(r.Laws) != 1 || r.Law != "56|0.53,0.6|256:67" {
		t.Errorf("%s", &out)
	}
	if r := read("--share"); len(r.Shares) != 4 || len(r.Decoder)+len(r.Laws)+len(r.Pairs) != 0 || r.Shares[0].Good < 490 || r.Shares[0].Trials != 500 {
		t.Errorf("%s", &out)
	}
	if r := read("--bound"); len(r.Few) != 9 || len(r.Shares) != 0 || r.Pairs[0].Cells != 3 || r.Few[0].AnyLaw != 4 || r.Few[0].Best != 4.5 || r.Few[0].Shipped != 5 {
		t.Errorf("%s", &out)
	}
}

func TestCommandHelps(t *testing.T) {
	var out, log bytes.Buffer
	if err := run([]string{"-h"}, &out, &log); err != nil || !strings.Contains(log.String(), "-law") || out.Len() != 0 {
		t.Errorf("-h: %v, %s", err, &log)
	}
}

func TestCommandRefuses(t *testing.T) {
	for _, bad := range [][]string{
		{"stray"},
		{"--nonsense"},
		{"--trials", "0"},
		{"--trials", "NaN"},
		{"--only", "0"},
		{"--only", "2,"},
		{"-o", "xml"},
		{"--law", "64|.5"},
		{"--search", "-1"},
		{"--law", shipped.String(), "--bound"},
		{"--share", "--plots", "."},
	} {
		var out, log bytes.Buffer
		if err := run(bad, &out, &log); err == nil || out.Len() > 0 {
			t.Errorf("%q is accepted: %v", bad, err)
		}
	}
}
