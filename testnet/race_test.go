//go:build race

package testnet

// defaultSeeds is small under the race detector, which keeps some memory for
// each coroutine that ever ran (Go 1.26: 5 KB and more for each iter.Pull), and
// so 40 MB for each run. `make seeds` runs without it.
const defaultSeeds = 10
