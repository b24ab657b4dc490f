// Package seq makes the sequences that a store returns.
package seq

import "iter"

// Of is the sequence of what run yields. If run ends with an error that is the last element,
// unless the caller has stopped.
func Of[T any](run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := run(func(v T) bool {
			stopped = !yield(v, nil)
			return !stopped
		})
		if err != nil && !stopped {
			var none T
			yield(none, err)
		}
	}
}
