package shards

import (
	"bytes"
	"container/heap"
	"iter"
)

// ByKey yields what several sequences yield, each of which goes up by key, in the order of
// the keys. An element is used before its sequence goes on.
func ByKey[T any](key func(*T) []byte, all []iter.Seq2[T, error]) iter.Seq2[T, error] {
	if len(all) == 1 {
		return all[0]
	}
	return func(yield func(T, error) bool) {
		h := &heads[T]{key: key}
		for _, one := range all {
			next, stop := iter.Pull2(one)
			defer stop()
			e, err, more := next()
			if err != nil {
				yield(e, err)
				return
			}
			if more {
				h.of = append(h.of, head[T]{e, next})
			}
		}
		heap.Init(h)
		for len(h.of) > 0 {
			least := &h.of[0]
			if !yield(least.first, nil) {
				return
			}
			e, err, more := least.next()
			switch {
			case err != nil:
				yield(e, err)
				return
			case more:
				least.first = e
				heap.Fix(h, 0)
			default:
				heap.Pop(h)
			}
		}
	}
}

// head is a sequence with its next element.
type head[T any] struct {
	first T
	next  func() (T, error, bool)
}

// heads is a heap of sequences, by the keys of their next elements.
type heads[T any] struct {
	key func(*T) []byte
	of  []head[T]
}

func (h *heads[T]) Len() int { return len(h.of) }
func (h *heads[T]) Less(i, j int) bool {
	return bytes.Compare(h.key(&h.of[i].first), h.key(&h.of[j].first)) < 0
}
func (h *heads[T]) Swap(i, j int) { h.of[i], h.of[j] = h.of[j], h.of[i] }
func (h *heads[T]) Push(x any)    { h.of = append(h.of, x.(head[T])) }
func (h *heads[T]) Pop() any {
	last := h.of[len(h.of)-1]
	h.of[len(h.of)-1] = head[T]{} // its element is not held any longer
	h.of = h.of[:len(h.of)-1]
	return last
}
