package main

import "math/big"

// edge is the largest integer whose 64th power is not above 2^n: six integer
// square roots of 2^n.
func edge(n int) uint64 {
	x := new(big.Int).Lsh(big.NewInt(1), uint(n))
	for range 6 {
		x.Sqrt(x)
	}
	return x.Uint64()
}
