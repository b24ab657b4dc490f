package replica

import "iter"

// ticking yields what scan yields, and calls tick every tickEvery items. The
// error of a tick ends the scan.
func ticking[T any](tick func() error, scan iter.Seq2[T, error]) iter.Seq2[T, error] {
	if tick == nil {
		return scan
	}
	return func(yield func(T, error) bool) {
		n := 0
		for item, err := range scan {
			if n++; err == nil && n%tickEvery == 0 {
				err = tick()
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}
