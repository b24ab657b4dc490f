// Package iblt finds the difference between two sets of key→value records for
// a cost that follows the difference, not the sets.
//
// Each record stands in the set as a Pair: the index of its key and a checksum
// of its content. A pair is added into some cells of an endless sequence; a
// Sketch is a part of that sequence. One side sends cells, the other subtracts
// its own, and peels pairs out of what is left with a Decoder.
package iblt
