package keyhash

// P is the largest prime below 2^48; indices, checksums and the sums of cells
// are numbers modulo P.
const P = 1<<48 - 59
