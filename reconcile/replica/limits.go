package replica

// maxUndo is how many changes a snapshot can reach back, 64 bytes each. A sync
// that is still asking for cells when so many records have been written since
// it began is told to start again.
const maxUndo = 1 << 18
