package main

import "math"

// leftBy is about how many differences are left if so many of the later half of n
// cells are not zero.
func leftBy(n, late int) float64 {
	half := n - n/2
	if half == 0 || late == 0 {
		return 0
	}
	free := max(float64(half-late), .5) / float64(half)
	return -math.Log(free) / density(max(1, n*3/4))
}
