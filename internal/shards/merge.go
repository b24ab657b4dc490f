package shards

import (
	"bytes"
	"iter"
)

// ByKey yields what several sequences yield, each of which goes up by key, in the order of
// the keys. An element is used before its sequence goes on. It ends with the first error.
func ByKey[T any](key func(*T) []byte, all []iter.Seq2[T, error]) iter.Seq2[T, error] {
	switch n := len(all); n {
	case 0:
		return func(func(T, error) bool) {}
	case 1:
		return all[0]
	default:
		return merge(key, ByKey(key, all[:n/2]), ByKey(key, all[n/2:]))
	}
}

// merge is ByKey of two sequences.
func merge[T any](key func(*T) []byte, a, b iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		other, failed, more := next()
		for one, err := range a {
			for ; more && (failed != nil || err == nil && bytes.Compare(key(&other), key(&one)) < 0); other, failed, more = next() {
				if !yield(other, failed) || failed != nil {
					return
				}
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
		for ; more; other, failed, more = next() {
			if !yield(other, failed) || failed != nil {
				return
			}
		}
	}
}
