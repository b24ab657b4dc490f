package replica

// maxUndo is how many changes a snapshot can be looked back behind: 16 MiB of
// the undo log. A sync that still asks for cells when more records have been
// written since it began is told to start again.
const maxUndo = 1 << 18

// tickEvery is how many items of a scan pass between two ticks: some
// milliseconds of work, beside which a tick that reads a clock costs nothing.
const tickEvery = 2048

// liveCells is the length of the live sketch of a set: 2^14 cells (384 KiB)
// serve 14,000 differences, and from a quarter of a million records 2^17 cells
// (3 MiB) serve 118,000.
func liveCells(records uint64) int {
	if records < 1<<18 {
		return 1 << 14
	}
	return 1 << 17
}
