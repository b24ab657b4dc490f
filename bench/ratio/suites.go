package main

// suite is the benchmarks of one package, and what is made of them.
type suite struct {
	pkg         string // folder in the module that is measured
	bench       string // -test.bench
	benchtime   string // -test.benchtime; a count keeps runs of equal work
	comparisons []comparison
}

// comparison is one row: a figure of ours beside that of a baseline.
type comparison struct {
	what       string
	ours, base figure
	target     string // of the ratio; "" where none is set
}

// figure is a benchmark's name and the unit of its value.
type figure struct{ bench, unit string }

var suites = []suite{
	{
		pkg:       "iblt",
		bench:     "^(BenchmarkSketchAdd|BenchmarkDecode)$",
		benchtime: "300ms",
		comparisons: []comparison{
			{
				what: "kept-sketch update, M = 2^14, beside one random 64-byte read-modify-write",
				ours: figure{"SketchAdd/M=16384", "ns/add"},
				base: figure{"SketchAdd/M=16384", "ns/touch"},
			},
			{
				what: "kept-sketch update, M = 2^17, beside one random 64-byte read-modify-write",
				ours: figure{"SketchAdd/M=131072", "ns/add"},
				base: figure{"SketchAdd/M=131072", "ns/touch"},
			},
			{
				what: "decode a difference, d = 100, beside a twin that divides per cell",
				ours: figure{"Decode/d=100", "ns/difference"},
				base: figure{"Decode/d=100", "ns/difference-twin"},
			},
			{
				what:   "decode a difference, d = 10^4, beside a twin that divides per cell",
				ours:   figure{"Decode/d=10000", "ns/difference"},
				base:   figure{"Decode/d=10000", "ns/difference-twin"},
				target: "≤ 0.5",
			},
		},
	},
}
