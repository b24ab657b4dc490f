// Command scale makes the model of docs/SCALE.md: a namespace of shards with a locator on
// 1,000 nodes, with 10^8 keys.
//
//	go -C bench run ./scale                        # the locator of 10^7 keys is built: half a minute, 0.7 GB
//	go -C bench run ./scale -built 100000000       # of all keys: more than ten minutes on a busy machine
//	go -C bench run ./scale -built 100000          # seconds
//
// It prints Markdown. What it runs: internal/placement plans the layouts, with and without a
// host; internal/locator follows all sets at some of the hosts, message by message, in one
// process, and is asked for keys that are there and that are not. What it models: how
// often things happen, what a message costs beside its bytes, and how fast links are. A run
// with the same flags prints the same figures, but for times.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are the command line: what is modelled, and what is run.
type options struct {
	nodes, shards, replicas int
	keys, built             int
	fresh, gone             float64 // part of the keys that is new, or collected, each day
	value                   int     // bytes of a record, as stored
	link                    float64 // bytes a second, each way, of a node
	header                  int     // bytes that a message costs beside its own
}

func run(args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.nodes, "nodes", 1000, "nodes, each of them a host")
	flags.IntVar(&o.shards, "shards", 256, "shards: a power of two")
	flags.IntVar(&o.replicas, "replicas", 2, "hosts of a shard")
	flags.IntVar(&o.keys, "keys", 100_000_000, "keys of the model")
	flags.IntVar(&o.built, "built", 10_000_000, "keys of the locator that is built")
	flags.Float64Var(&o.fresh, "new", 0.01, "part of the keys that is new each day")
	flags.Float64Var(&o.gone, "gone", 0.01, "part of the keys that is deleted and collected each day")
	flags.IntVar(&o.value, "record", 1024, "bytes of a record, as it travels")
	mbit := flags.Float64("mbit", 100, "megabits a second of a node's link, each way")
	flags.IntVar(&o.header, "header", 100, "bytes of headers (IP, TCP, TLS, yamux) a message")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.link = *mbit * 1e6 / 8
	if flags.NArg() > 0 || o.nodes < 2 || o.built < 1 || o.keys < o.built || o.link <= 0 || o.fresh < 0 || o.gone < 0 {
		return fmt.Errorf("read the command line: want 2 nodes or more, -built of 1 to -keys, and no arguments")
	}
	begin := time.Now()
	plan, err := o.layouts()
	if err != nil {
		return err
	}
	told, err := o.tell(log, plan.rows)
	if err != nil {
		return err
	}
	if err := o.print(out, plan, told); err != nil {
		return err
	}
	fmt.Fprintf(log, "%.0f s\n", time.Since(begin).Seconds())
	return nil
}
