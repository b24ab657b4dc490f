package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each benchmark that the table names is in the package it names.
func TestSuites(t *testing.T) {
	for _, s := range suites {
		files, err := filepath.Glob(filepath.Join("..", "..", s.pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s (%v)", s.pkg, err)
		}
		var source strings.Builder
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(b)
		}
		for _, c := range s.comparisons {
			for _, f := range []figure{c.ours, c.base} {
				name, _, _ := strings.Cut(f.bench, "/")
				if !regexp.MustCompile(s.bench).MatchString("Benchmark"+name) || !strings.Contains(source.String(), "func Benchmark"+name+"(") {
					t.Errorf("%s has no benchmark %s that %s runs", s.pkg, name, s.bench)
				}
			}
		}
	}
}

func TestRow(t *testing.T) {
	var runs []figures
	for _, out := range []string{
		"BenchmarkPut/ours-2 10 300 ns/op 8.0 ns/put\nBenchmarkPut/raw-2 10 100 ns/op 4.0 ns/put\n",
		"BenchmarkPut/ours-2 10 100 ns/op 9.0 ns/put\nBenchmarkPut/raw-2 10 100 ns/op 3.0 ns/put\n",
		"BenchmarkPut/ours-2 10 200 ns/op 3.0 ns/put\nBenchmarkPut/raw-2 10 100 ns/op 3.0 ns/put\n",
	} {
		f, err := parse([]byte("goos: linux\npkg: p\n" + out + "PASS\n"))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, f)
	}
	for unit, want := range map[string]string{
		"ns/op":  "puts\t200 ns/op\t100 ns/op\t2.000\t1.000 – 3.000\t≤ 2\t3\t",
		"ns/put": "puts\t8 ns/put\t3 ns/put\t2.000\t1.000 – 3.000\t≤ 2\t3\t",
	} {
		c := comparison{what: "puts", ours: figure{"Put/ours", unit}, base: figure{"Put/raw", unit}, target: "≤ 2"}
		got, err := c.row(runs)
		if err != nil || got != want {
			t.Errorf("%q (%v), want %q", got, err, want)
		}
	}
	c := comparison{ours: figure{"Gone", "ns/op"}, base: figure{"Put/raw", "ns/op"}}
	if _, err := c.row(runs); err == nil || !strings.Contains(err.Error(), "Gone") {
		t.Errorf("a benchmark that is gone: %v", err)
	}
}
