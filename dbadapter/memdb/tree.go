package memdb

import (
	"cmp"
	"math/rand/v2"
)

// tree is a persistent treap (Seidel and Aragon, 1996): a search tree that is a heap by
// random priorities. put and remove copy the path to the root and share the rest. So a
// root is a snapshot, for nothing. The zero tree is empty.
type tree[K cmp.Ordered, V any] struct{ root *node[K, V] }

type node[K cmp.Ordered, V any] struct {
	key         K
	value       V
	priority    uint64
	left, right *node[K, V]
}

// get returns the value under key.
func (t tree[K, V]) get(key K) (value V, ok bool) {
	for n := t.root; n != nil; {
		switch c := cmp.Compare(key, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return value, false
}

// put returns the tree with value under key.
func (t tree[K, V]) put(key K, value V) tree[K, V] {
	return tree[K, V]{t.root.put(key, value)}
}

func (n *node[K, V]) put(key K, value V) *node[K, V] {
	if n == nil {
		return &node[K, V]{key: key, value: value, priority: rand.Uint64()}
	}
	c := *n
	switch o := cmp.Compare(key, n.key); {
	case o < 0:
		c.left = n.left.put(key, value)
		if l := c.left; l.priority > c.priority { // l is fresh: no snapshot has it
			c.left, l.right = l.right, &c
			return l
		}
	case o > 0:
		c.right = n.right.put(key, value)
		if r := c.right; r.priority > c.priority {
			c.right, r.left = r.left, &c
			return r
		}
	default:
		c.value = value
	}
	return &c
}

// remove returns the tree without the key.
func (t tree[K, V]) remove(key K) tree[K, V] {
	return tree[K, V]{t.root.remove(key)}
}

func (n *node[K, V]) remove(key K) *node[K, V] {
	if n == nil {
		return nil
	}
	c := *n
	switch o := cmp.Compare(key, n.key); {
	case o < 0:
		c.left = n.left.remove(key)
	case o > 0:
		c.right = n.right.remove(key)
	default:
		return join(n.left, n.right)
	}
	return &c
}

// join is the tree of both, where each key of a is less than each of b.
func join[K cmp.Ordered, V any](a, b *node[K, V]) *node[K, V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		c := *a
		c.right = join(a.right, b)
		return &c
	}
	c := *b
	c.left = join(a, b.left)
	return &c
}

// from yields the entries whose keys are at least start, in order, until
// yield returns false.
func (t tree[K, V]) from(start K, yield func(K, V) bool) {
	t.root.from(start, yield)
}

func (n *node[K, V]) from(start K, yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	if cmp.Compare(n.key, start) < 0 {
		return n.right.from(start, yield)
	}
	return n.left.from(start, yield) && yield(n.key, n.value) && n.right.from(start, yield)
}
