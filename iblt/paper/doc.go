// Command paper repeats the simulations of section 5 of Goodrich and
// Mitzenmacher, "Invertible Bloom Lookup Tables" (2011). It uses the table of
// package iblt, and prints each figure next to the paper's:
//
//	go run ./iblt/paper                     # 20,000 trials, 1,000 of the large tables: half an hour
//	go run ./iblt/paper --trials 1000       # minutes
//	go run ./iblt/paper --only 1a           # Figure 1(a) alone
//	go run ./iblt/paper --plots docs        # writes the plots there
//
// It prints Markdown. docs/PAPER.md holds a run of all parts, with how many
// trials each had, and says where a figure differs from the paper's. The tests of
// this package are a short run. They fail if a figure is not the paper's, with one
// false alarm in a million runs.
//
// Each trial is drawn from a seed of its own. So a run with the same --seed and
// --trials prints the same figures on any number of cores.
package main
