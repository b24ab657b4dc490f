//go:build !amd64

package ribbon

// fetch reads from all cache lines of the places, for processors without a
// stub: a processor works on several reads at once.
func fetch(places []place) {
	var sum uint64
	for _, p := range places {
		for j := 0; j < len(p.blocks); j += 8 {
			sum ^= p.blocks[j]
		}
		sum ^= p.blocks[len(p.blocks)-1]
	}
	keep(sum)
}

// keep stops the compiler from dropping the computation of its argument.
//
//go:noinline
func keep(uint64) {}
