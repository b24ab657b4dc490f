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

var suites = []suite{
	{
		pkg:       "iblt/rateless",
		bench:     "^(BenchmarkReplace|BenchmarkDecode)$",
		benchtime: "300ms",
		comparisons: []comparison{
			{
				what: "live-sketch update, M = 2^14, beside as many 32-byte read-modify-writes at random places",
				ours: figure{"Replace/M=16384", "ns/replace"},
				base: figure{"Replace/M=16384", "ns/uniform"},
			},
			{
				what:   "live-sketch update, M = 2^17, beside as many 32-byte read-modify-writes at random places",
				ours:   figure{"Replace/M=131072", "ns/replace"},
				base:   figure{"Replace/M=131072", "ns/uniform"},
				target: "≤ 1.5",
			},
			{
				what: "live-sketch update, M = 2^17, beside the same at the pairs' own places",
				ours: figure{"Replace/M=131072", "ns/replace"},
				base: figure{"Replace/M=131072", "ns/own"},
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
	{
		pkg:       "iblt/rateless",
		bench:     "^BenchmarkAddAll$",
		benchtime: "1x", // ten million pairs are enough of a repetition
		comparisons: []comparison{
			{
				what: "sketch 10^6 pairs into 2^14 cells, beside a pass over the pairs",
				ours: figure{"AddAll/n=1000000/M=16384", "ns/pair"},
				base: figure{"AddAll/n=1000000/M=16384", "ns/pass"},
			},
			{
				what: "sketch 10^6 pairs into 2^17 cells, beside a pass over the pairs",
				ours: figure{"AddAll/n=1000000/M=131072", "ns/pair"},
				base: figure{"AddAll/n=1000000/M=131072", "ns/pass"},
			},
			{
				what: "sketch 10^7 pairs into 2^14 cells, beside a pass over the pairs",
				ours: figure{"AddAll/n=10000000/M=16384", "ns/pair"},
				base: figure{"AddAll/n=10000000/M=16384", "ns/pass"},
			},
			{
				what: "sketch 10^7 pairs into 2^17 cells, beside a pass over the pairs",
				ours: figure{"AddAll/n=10000000/M=131072", "ns/pair"},
				base: figure{"AddAll/n=10000000/M=131072", "ns/pass"},
			},
			{
				what: "sketch 10^7 pairs into 2^14 cells, beside an Add of each on one processor",
				ours: figure{"AddAll/n=10000000/M=16384", "ns/pair"},
				base: figure{"AddAll/n=10000000/M=16384", "ns/add"},
			},
			{
				what: "sketch 10^7 pairs into 2^17 cells, beside an Add of each on one processor",
				ours: figure{"AddAll/n=10000000/M=131072", "ns/pair"},
				base: figure{"AddAll/n=10000000/M=131072", "ns/add"},
			},
			{
				what: "sketch 10^7 pairs into 2^14 cells, beside an Add of each, time of all processors",
				ours: figure{"AddAll/n=10000000/M=16384", "cpu-ns/pair"},
				base: figure{"AddAll/n=10000000/M=16384", "cpu-ns/add"},
			},
			{
				what: "sketch 10^7 pairs into 2^17 cells, beside an Add of each, time of all processors",
				ours: figure{"AddAll/n=10000000/M=131072", "cpu-ns/pair"},
				base: figure{"AddAll/n=10000000/M=131072", "cpu-ns/add"},
			},
		},
	},
	{
		pkg:       "dbadapter/badgerdb",
		bench:     "^BenchmarkPut$",
		benchtime: "1s",
		comparisons: []comparison{
			{
				what:   "put through the store, durable, batches of 1, beside raw Badger (time)",
				ours:   figure{"Put/batch=1", "ns/put"},
				base:   figure{"Put/batch=1", "raw-ns/put"},
				target: "≤ 2",
			},
			{
				what:   "put through the store, durable, batches of 100, beside raw Badger (time)",
				ours:   figure{"Put/batch=100", "ns/put"},
				base:   figure{"Put/batch=100", "raw-ns/put"},
				target: "≤ 2",
			},
			{
				what:   "put through the store, durable, batches of 1000, beside raw Badger (time)",
				ours:   figure{"Put/batch=1000", "ns/put"},
				base:   figure{"Put/batch=1000", "raw-ns/put"},
				target: "≤ 2",
			},
		},
	},
	{
		pkg:       "peer",
		bench:     "^BenchmarkTransports$",
		benchtime: "5x",
		comparisons: []comparison{
			{
				what: "connect on loopback over TCP, beside QUIC",
				ours: figure{"Transports/connect/tcp", "ns/op"},
				base: figure{"Transports/connect/quic", "ns/op"},
			},
			{
				what: "sync 64 records of 1 MiB over TCP, beside QUIC",
				ours: figure{"Transports/sync64MiB/tcp", "ns/op"},
				base: figure{"Transports/sync64MiB/quic", "ns/op"},
			},
			{
				what: "open a node that listens over both, beside TCP only",
				ours: figure{"Transports/open/both", "ns/op"},
				base: figure{"Transports/open/tcp", "ns/op"},
			},
		},
	},
}
