package node

import "github.com/syncd-io/syncd/reconcile/wire"

// origin is what was heard of a member's pushes.
type origin struct {
	incarnation, last uint64
	// missing has bit i set if push last−i has not come.
	missing uint64
}

// maxOrigins is of how many members the numbers of pushes are followed. The pushes of
// others are taken, and lead to no sync.
const maxOrigins = 1 << 14

// hear notes a push with a number, or a digest after one, and reports whether
// pushes are missing. If first is set, nothing was heard of the member before, and
// it has pushed before. The numbers are not proven: at worst they lead to a sync
// too many, or leave one to the digests.
func (o *origin) hear(m *wire.PushMessage) (gap, first bool) {
	digest := m.Kind == wire.PushDigest
	earlier := m.Number > 1 || digest && m.Number > 0
	switch {
	case o.incarnation == 0 && o.last == 0:
		*o = origin{incarnation: m.Incarnation, last: m.Number}
		return false, earlier
	case m.Incarnation != o.incarnation || m.Number+64 <= o.last:
		// It has started anew, or what was heard before was false.
		*o = origin{incarnation: m.Incarnation, last: m.Number}
		return earlier, false
	case m.Number > o.last:
		n := m.Number - o.last
		if n >= 64 {
			o.missing = ^uint64(0)
		} else {
			o.missing = o.missing<<n | (1<<n - 1)
		}
		if !digest {
			o.missing &^= 1
		}
		o.last = m.Number
	case !digest:
		o.missing &^= 1 << (o.last - m.Number)
	}
	return o.missing != 0, false
}

// brought notes that all pushes up to what was heard earlier have come otherwise.
func (o *origin) brought(earlier *origin) {
	if n := o.last - earlier.last; o.incarnation == earlier.incarnation && n < 64 {
		o.missing &= 1<<n - 1
	}
}
