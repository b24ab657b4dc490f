// Command short measures cells without a check field: 10, 11 and 11.5 bytes, whose
// checksums check themselves by 8 bits. It prints a table: cells and bytes a difference, the
// pairs that were accepted wrongly, and what came of them.
//
// The decoder here is a model, made from docs/IBLT.md section 9: it is
// for figures, not for speed.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	widths := flag.String("bits", "38,42,44", "widths of the sums, in bits")
	records := flag.Int("records", 1_000_000, "records of the local set")
	factor := flag.Float64("trials", 1, "multiply the numbers of trials")
	gate := flag.Float64("gate", 4, "test a cell if that many differences are expected in it at most")
	check := flag.Int("check", 8, "bits of a checksum that check it")
	seed := flag.Uint64("seed", 1, "seed of all trials")
	only := flag.Int("d", 0, "only so many differences")
	flag.Parse()
	fmt.Println("| cell, bytes | d | changed | trials | cells a difference: mean | 99th | bytes a difference | tests a difference | wrong a decode | taken back a decode | acts a cell, most | stalled | of these at the bound | false |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, width := range strings.Split(*widths, ",") {
		bits, err := strconv.Atoi(width)
		if err != nil || bits < 16 || bits > 48 {
			fmt.Fprintf(os.Stderr, "read --bits: %q is no width from 16 to 48\n", width)
			os.Exit(1)
		}
		o := newWorld(newForm(bits, *check), *records, *seed)
		for _, e := range []struct{ d, trials int }{{10, 20_000}, {40, 5000}, {100, 2000}, {1000, 100}, {10_000, 5}} {
			if *only == 0 || *only == e.d {
				for _, changed := range []int{0, e.d / 2, e.d} {
					row(o, e.d, changed, max(1, int(float64(e.trials)**factor)), *gate)
				}
			}
		}
	}
}

// row makes trials and prints what came of them.
func row(o *world, d, changed, trials int, gate float64) {
	var cells []float64
	var sum outcome
	mean, most, stalled, bound, wrong := 0.0, 0.0, 0, 0, 0
	for range trials {
		u := o.decode(d, changed, gate)
		c := float64(u.cells) / float64(d)
		cells, mean = append(cells, c), mean+c/float64(trials)
		most = max(most, float64(u.act)/float64(u.cells))
		sum.tests, sum.wrong, sum.undone = sum.tests+u.tests, sum.wrong+u.wrong, sum.undone+u.undone
		if u.stalled {
			stalled++
		}
		if u.bound {
			bound++
		}
		if u.false {
			wrong++
		}
	}
	slices.Sort(cells)
	n := float64(trials)
	fmt.Printf("| %.1f | %d | %d | %d | %.3f | %.2f | %.2f | %.2f | %.4f | %.4f | %.2f | %d | %d | %d |\n",
		o.bytes(), d, changed, trials, mean, cells[min(trials*99/100, trials-1)], mean*o.bytes(),
		float64(sum.tests)/n/float64(d), float64(sum.wrong)/n, float64(sum.undone)/n, most, stalled, bound, wrong)
}
