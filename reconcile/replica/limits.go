package replica

// maxUndo is how many changes a snapshot can be looked back behind: 16 MiB of
// the undo log. A sync that still asks for cells when more records have been
// written since it began is told to start again.
const maxUndo = 1 << 18

// tickEvery is how many items of a scan pass between two ticks. 64 records of the
// largest size, 64 MiB, are read in less than a second. 64 pairs take some
// microseconds; a look at a clock is little compared with that.
const tickEvery = 64

// listPart is how many indices of a range are read before their records: 32 KiB.
const listPart = 4096

// aheadBytes is about how much of the values under several indices is read at once.
const aheadBytes = 4 << 20

// Memory that the replica of a prefix reserves. It is an entry of a map for each record and
// its index, for so many records at once, 16 bytes for each cell, and the sums of the ranges.
const (
	rangeBytes   = 160 << 10
	listedBytes  = 96 // an entry of the map that lists ranges
	recordBytes  = 48
	cellBytes    = 16
	reserveEvery = 4096
)

// spanCells is the length of the first sketch of a span. It decodes the differences of
// a part that was well estimated, and takes 1 MiB.
const spanCells = 1 << 16

// liveCells is the length of the live sketch of a set. 2^14 cells (256 KiB) serve
// 14,000 differences. From a quarter of a million records on, 2^17 cells (2 MiB) serve
// 118,000.
func liveCells(records uint64) int {
	if records < 1<<18 {
		return 1 << 14
	}
	return 1 << 17
}
