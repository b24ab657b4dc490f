// Command degrees measures how many coded cells a difference takes until it is
// decoded, and how that depends on which cells a pair belongs to:
//
//	go -C bench run ./degrees                       # half an hour of one core
//	go -C bench run ./degrees --only 2,64,256       # these numbers of differences alone
//	go -C bench run ./degrees --trials 0.1          # a tenth of the trials
//	go -C bench run ./degrees --share               # 40 differences out of 128 cells
//	go -C bench run ./degrees --bound               # what no law can better at few differences
//	go -C bench run ./degrees --law '20|.5,.6|33:9,50:32,106:67,67:185'   # another law
//	go -C bench run ./degrees --search 1000         # climb to better laws
//	go -C bench run ./degrees --plots ../docs      # writes the charts there
//
// It prints Markdown, or JSON with -o json. docs/DEGREES.md holds a run with
// a tenth of the trials.
//
// What iblt ships is measured with its own Sketch and Decoder, which get cell
// after cell until they are done. Laws are simulated: mappings in floating
// point, and a peel that sees how many keys a cell holds instead of testing
// sums. The simulation also runs the shipped law, so that the two can be
// compared; its constants are repeated in law.go, and the tests hold
// them against the cells that iblt puts pairs into.
//
// A search changes some numbers of a law and keeps what is better, by a score of
// means where bytes are paid for, tails where a first message should suffice, and a price
// of each cell that a pair is in.
//
// Each trial is drawn from a seed of its own, so that a run with the same
// --seed and --trials prints the same figures on any number of cores.
package main
