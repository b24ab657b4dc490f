package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// hastening decides which syncs pushes bring about. A push that was lost shows as a gap
// in its origin's numbers, what was not pushed is told of, and digests of sets that have
// been quiet differ: each leads to a sync with the peer that knows, a little later, at
// most one at a time and not more often than once in a pause. What has come to be equal
// meanwhile needs no sync.
type hastening struct {
	mu      sync.Mutex // guards what follows
	origins map[ID]*origin
	wants   map[ID]*want
	running bool
}

// origin is what was heard of a member's pushes.
type origin struct {
	incarnation, last uint64
	// missing has bit i set if push last−i has not come.
	missing uint64
}

// want is a sync to come.
type want struct {
	due time.Duration
	// from has passed on what led to it, and may be asked where the peer itself cannot.
	from ID
	// gap: pushes of the peer are missing. more: it said that there is more. sets, if
	// not nil, are what it holds.
	gap, more bool
	sets      *wire.Sets
	// last is when the last sync ended, pause the least time up to the next.
	last, pause time.Duration
}

// active reports whether there is a reason for a sync.
func (w *want) active() bool { return w.gap || w.more || w.sets != nil }

// hear notes a push with a number, or a digest after one, and reports whether pushes are
// missing. The numbers are not proven: at worst they lead to a sync too many, or leave
// one to the digests.
func (o *origin) hear(m *wire.PushMessage) (gap bool) {
	digest := m.Kind == wire.PushDigest
	switch {
	case o.incarnation == 0 && o.last == 0:
		*o = origin{incarnation: m.Incarnation, last: m.Number}
	case m.Incarnation != o.incarnation || m.Number+64 <= o.last:
		// It has started anew, or what was heard before was false.
		*o = origin{incarnation: m.Incarnation, last: m.Number}
		return m.Number > 1 || digest && m.Number > 0
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
	return o.missing != 0
}

// heard notes a push.
func (h *hastening) heard(ns *Namespace, from, by ID, m *wire.PushMessage) {
	now, p := ns.node.elapsed(), &ns.node.Push
	equal := m.Kind == wire.PushDigest && ns.told(m.Sets)
	differ := m.Kind == wire.PushDigest && !equal && ns.quiet(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.origins == nil {
		h.origins, h.wants = map[ID]*origin{}, map[ID]*want{}
	}
	o := h.origins[by]
	if o == nil {
		if len(h.origins) >= maxOrigins {
			return // syncs at intervals bring what is lost
		}
		o = &origin{}
		h.origins[by] = o
	}
	gap := o.hear(m)
	if equal { // what was lost has come otherwise
		gap, o.missing = false, 0
	}
	w := h.wants[by]
	if w == nil {
		if !gap && !differ && m.Kind != wire.PushMore {
			return
		}
		w = &want{pause: p.Pause, last: -p.Pause}
		h.wants[by] = w
	}
	if was := w.active(); !was {
		w.due = max(now+ns.node.jittered(p.Pause/4, ForPush), w.last+w.pause)
		defer ns.pushable()
	}
	w.from = from
	w.gap = gap
	w.more = w.more || m.Kind == wire.PushMore
	if m.Kind == wire.PushDigest {
		w.sets = nil
		if differ {
			w.sets = &m.Sets
		}
	}
}

// maxOrigins is of how many members the numbers of pushes are followed. The pushes of
// others are taken, and lead to no sync.
const maxOrigins = 1 << 14

// NextSync is the peer that this node is to sync with now because of pushes, and another
// one for where that cannot be reached. Done must follow. Otherwise it says how long to
// wait before it is asked again, unless Config.Pushable tells the driver before; 0: for
// good.
func (ns *Namespace) NextSync() (with, or ID, wait time.Duration) {
	now := ns.node.elapsed()
	h := &ns.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running {
		return "", "", 0
	}
	for id, w := range h.wants {
		if w.sets != nil && *w.sets == ns.sets() {
			w.sets, w.gap = nil, false
			h.origins[id].missing = 0
		}
		switch {
		case !w.active():
		case now < w.due:
			if wait == 0 || w.due-now < wait {
				wait = w.due - now
			}
		case with == "" || w.due < h.wants[with].due || w.due == h.wants[with].due && id < with:
			with, or = id, w.from
		}
	}
	if with == "" {
		return "", "", wait
	}
	h.running = true
	w := h.wants[with]
	w.gap, w.more, w.sets = false, false, nil
	h.origins[with].missing = 0 // the sync brings it
	return with, or, 0
}

// HastenedDone tells how the sync that NextSync gave has ended. After a failure the next
// one with that peer waits longer, up to an interval of background syncs.
func (ns *Namespace) HastenedDone(with ID, err error) {
	p := &ns.node.Push
	h := &ns.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	w := h.wants[with]
	w.last = ns.node.elapsed()
	if err == nil {
		w.pause = p.Pause
	} else {
		w.pause = max(p.Pause, min(2*w.pause, ns.node.Interval))
	}
	if w.active() {
		w.due = max(w.due, w.last+w.pause)
	}
	ns.pushable()
}
