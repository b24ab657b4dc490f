package main

// suite is the benchmarks of one package, and what is made of them.
type suite struct {
	pkg         string // folder in the module that is measured
	bench       string // -test.bench
	benchtime   string // -test.benchtime
	comparisons []comparison
}

// comparison is one row: a figure of ours beside that of a baseline.
type comparison struct {
	what       string
	ours, base figure
	target     string // of the ratio; may be empty
}

// figure is a benchmark's name and the unit of its value.
type figure struct{ bench, unit string }

// within compares two figures of one benchmark.
func within(bench, what, ours, base, target string) comparison {
	return comparison{what, figure{bench, ours}, figure{bench, base}, target}
}

var suites = []suite{
	{
		pkg:       "iblt/rateless",
		bench:     "^(BenchmarkReplace|BenchmarkDecode)$",
		benchtime: "300ms",
		comparisons: []comparison{
			within("Replace/M=16384", "live-sketch update, M = 2^14, beside as many 32-byte read-modify-writes at random places", "ns/replace", "ns/uniform", ""),
			within("Replace/M=131072", "live-sketch update, M = 2^17, beside as many 32-byte read-modify-writes at random places", "ns/replace", "ns/uniform", "≤ 1.5"),
			within("Replace/M=131072", "live-sketch update, M = 2^17, beside the same at the pairs' own places", "ns/replace", "ns/own", ""),
			within("Decode/d=100", "decode a difference, d = 100, beside a twin that divides per cell", "ns/difference", "ns/difference-twin", ""),
			within("Decode/d=10000", "decode a difference, d = 10^4, beside a twin that divides per cell", "ns/difference", "ns/difference-twin", "≤ 0.5"),
		},
	},
	{
		pkg:       "iblt/rateless",
		bench:     "^BenchmarkAddAll$",
		benchtime: "1x", // ten million pairs are enough of a repetition
		comparisons: []comparison{
			within("AddAll/n=1000000/M=16384", "sketch 10^6 pairs into 2^14 cells, beside a pass over the pairs", "ns/pair", "ns/pass", ""),
			within("AddAll/n=1000000/M=131072", "sketch 10^6 pairs into 2^17 cells, beside a pass over the pairs", "ns/pair", "ns/pass", ""),
			within("AddAll/n=10000000/M=16384", "sketch 10^7 pairs into 2^14 cells, beside a pass over the pairs", "ns/pair", "ns/pass", ""),
			within("AddAll/n=10000000/M=131072", "sketch 10^7 pairs into 2^17 cells, beside a pass over the pairs", "ns/pair", "ns/pass", ""),
			within("AddAll/n=10000000/M=16384", "sketch 10^7 pairs into 2^14 cells, beside an Add of each on one processor", "ns/pair", "ns/add", ""),
			within("AddAll/n=10000000/M=131072", "sketch 10^7 pairs into 2^17 cells, beside an Add of each on one processor", "ns/pair", "ns/add", ""),
			within("AddAll/n=10000000/M=16384", "sketch 10^7 pairs into 2^14 cells, beside an Add of each, time of all processors", "cpu-ns/pair", "cpu-ns/add", ""),
			within("AddAll/n=10000000/M=131072", "sketch 10^7 pairs into 2^17 cells, beside an Add of each, time of all processors", "cpu-ns/pair", "cpu-ns/add", ""),
		},
	},
	{
		pkg:       "dbadapter/ondisk",
		bench:     "^BenchmarkPut$",
		benchtime: "1s",
		comparisons: []comparison{
			within("Put/batch=1", "put through the store, durable, batches of 1, beside raw Badger (time)", "ns/put", "raw-ns/put", "≤ 2"),
			within("Put/batch=100", "put through the store, durable, batches of 100, beside raw Badger (time)", "ns/put", "raw-ns/put", "≤ 2"),
			within("Put/batch=1000", "put through the store, durable, batches of 1000, beside raw Badger (time)", "ns/put", "raw-ns/put", "≤ 2"),
		},
	},
	{
		pkg:       "peer",
		bench:     "^BenchmarkTransports$",
		benchtime: "5x",
		comparisons: []comparison{
			{"connect on loopback over TCP, beside QUIC", figure{"Transports/connect/tcp", "ns/op"}, figure{"Transports/connect/quic", "ns/op"}, ""},
			{"sync 64 records of 1 MiB over TCP, beside QUIC", figure{"Transports/sync64MiB/tcp", "ns/op"}, figure{"Transports/sync64MiB/quic", "ns/op"}, ""},
			{"open a node that listens over both, beside TCP only", figure{"Transports/open/both", "ns/op"}, figure{"Transports/open/tcp", "ns/op"}, ""},
		},
	},
}
