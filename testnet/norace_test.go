//go:build !race

package testnet

// defaultSeeds is how many seeds TestSeeds runs unless told.
const defaultSeeds = 80
