package main

// law tells which cells an index belongs to. It belongs to cell 0 by each.
type law interface {
	// cells appends the cells below limit of key number k of a trial, rising.
	cells(dst []int32, trial uint64, k, limit int) []int32
	// held is the part of all indices that cell j > 0 holds.
	held(j int) float64
	// alike is the probability that two indices belong to the same of the first
	// n cells. Two differences are decoded from n cells unless they do: in the
	// first cell that holds one of them, this one is found, and then the other.
	alike(n int) float64
}

// The laws that are compared. iblt/rateless does not export its constants;
// TestShippedConstants compares shipped with the cells that its pairs are in.
var (
	shipped = newBlocks(20, .45, .58, []class{{33, 9}, {50, 32}, {106, 67}, {67, 185}})
	// joined was shipped before, as version 2: two openings, and three classes.
	joined = &steps{[]opening{{20, .45}, {68, .58}}, []part{{.18, .11}, {.56, .68}, {.26, .83}}}
	// regular is the mapping of rateless IBLTs (Yang, Gilad, Alizadeh 2024,
	// section 4).
	regular = alone(.50)
)
