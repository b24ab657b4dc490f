//go:build !amd64

package ribbon

// fetch reads the first word of each of n stretches of memory, for processors
// without a stub. A processor works on several reads at once, and often fetches
// the lines behind one that is read.
func fetch(addresses *[batch]*uint64, n, _ int) {
	var sum uint64
	for _, a := range addresses[:n] {
		sum ^= *a
	}
	keep(sum)
}

// keep stops the compiler from dropping the computation of its argument.
//
//go:noinline
func keep(uint64) {}
