// Command filter measures what a method of its own for one-sided differences could
// save: the side that lacks records sends a filter of its pairs, the other sends each
// record that the filter does not know.
//
//	go -C bench run ./filter               # a minute
//	go -C bench run ./filter -records 100000
//
// Each row is a set of records at one side, d more at the other, and values of one
// size. It prints the bytes of a whole sync in both directions by the coded cells, by
// sending all, and by the best filter: bumped ribbons of 1 to 12 bits, built and
// asked, the smallest total of the filter, the records that it lets through and a
// sync by the cells of those that it takes for held. Records have keys of 8 bytes and
// no signature: the fewer bytes a record has, the better for the filter.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "filter:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	records int
	seed    uint64
}

func run(args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("filter", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.records, "records", 50_000, "records that both sides hold")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of keys and values")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.records < 1000 || o.records > 10_000_000 {
		return fmt.Errorf("read the command line: want -records 1000 to 10000000, and no arguments")
	}
	fmt.Fprintf(out, "| records at both | more at one | bytes of a value | cells | all | best filter | its bits | filter beside the better of both |\n|---|---|---|---|---|---|---|---|\n")
	for _, share := range []float64{0.01, 0.1, 0.5, 1, 4} {
		for _, value := range []int{0, 16, 100} {
			r, err := measure(o.records, int(share*float64(o.records)), value, o.seed)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %d | %d | %d | %d | %d | %d | %d | %.2f |\n",
				o.records, r.more, value, r.cells, r.all, r.filter, r.bits, float64(r.filter)/float64(min(r.cells, r.all)))
		}
	}
	return nil
}

// result is the bytes of one sync by each method.
type result struct {
	more               int
	cells, all, filter int64
	bits               int // of the best filter's fingerprints
}

// measure syncs a side that holds records with one that holds more besides.
func measure(records, more, value int, seed uint64) (r result, err error) {
	r.more = more
	lacking, full, err := sides(records, more, value, seed)
	if err != nil {
		return r, err
	}
	ctx := context.Background()
	cells, err := lacking.pull(ctx, full, wire.MethodSketch)
	if err != nil {
		return r, err
	}
	r.cells = cells.WireBytesSent + cells.WireBytesReceived
	if cells.Applied != more {
		return r, fmt.Errorf("the cells found %d records of %d", cells.Applied, more)
	}
	if lacking, full, err = sides(records, more, value, seed); err != nil {
		return r, err
	}
	all, err := lacking.pull(ctx, full, wire.MethodAll)
	if err != nil {
		return r, err
	}
	r.all = all.WireBytesSent + all.WireBytesReceived
	if all.Applied != more {
		return r, fmt.Errorf("all brought %d records of %d", all.Applied, more)
	}
	// What a sync by cells costs beside the records, and each of its differences.
	record := float64(cells.RecordBytes) / float64(more)
	search := float64(r.cells-cells.RecordBytes) / float64(more)
	for bits := 1; bits <= 12; bits++ {
		size, mistaken, err := filter(bits, full.pairs[:records], full.pairs[records:], seed)
		if err != nil {
			return r, err
		}
		total := int64(size) + int64(float64(more)*record) + int64(float64(mistaken)*search)
		if r.bits == 0 || total < r.filter {
			r.filter, r.bits = total, bits
		}
	}
	return r, nil
}

// filter is the bytes of a filter of the held pairs, and how many of the others it
// takes for held.
func filter(bits int, held, others []uint64, seed uint64) (size, mistaken int, err error) {
	f, err := ribbon.BuildFilter(ribbon.Config{FingerprintBits: bits, Filter: ribbon.Bumped, Seed: seed}, keyed.Numbers(held))
	if err != nil {
		return 0, 0, err
	}
	for _, p := range others {
		if f.Lookup(keyed.Number(p)) {
			mistaken++
		}
	}
	return f.Stats().Bits / 8, mistaken, nil
}

// sides makes the two sides.
func sides(records, more, value int, seed uint64) (lacking, full *side, err error) {
	lacking, full = newSide("lacking"), newSide("full")
	random := rand.New(rand.NewPCG(seed, 0))
	var batch []dbadapter.Hashed
	for i := range records + more {
		key, content := make([]byte, 8), make([]byte, value)
		binary.BigEndian.PutUint64(key, random.Uint64())
		for k := range content {
			content[k] = byte(random.Uint64())
		}
		hashed, err := full.hash(key, content)
		if err != nil {
			return nil, nil, err
		}
		full.pairs = append(full.pairs, uint64(hashed.Index))
		batch = append(batch, hashed)
		if len(batch) < 1000 && i+1 != records && i+1 != records+more {
			continue
		}
		if _, err := full.commit(batch); err != nil {
			return nil, nil, err
		}
		if i < records {
			if _, err := lacking.commit(batch); err != nil {
				return nil, nil, err
			}
		}
		batch = batch[:0]
	}
	return lacking, full, nil
}
