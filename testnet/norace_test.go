//go:build !race

package testnet

// defaultSeeds is how many seeds TestSeeds runs by default.
const defaultSeeds = 80
