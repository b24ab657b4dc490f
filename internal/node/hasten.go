package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// hastening decides which syncs pushes bring about. A push that was lost shows as a
// gap in its origin's numbers. A member tells of what was not pushed. Digests of
// sets that have been quiet differ. Each leads to a sync with the peer that knows,
// a little later. These syncs go one at a time while they end soon, and not more
// often than once in a pause. What has come to be equal meanwhile needs no sync.
type hastening struct {
	mu      sync.Mutex // guards what follows
	members *Members   // the list by which origins and wants were looked through last
	origins map[ID]*origin
	wants   map[ID]*want
	running map[ID]time.Duration // since when
	// fresh is when the last sync began that did not fail. It has brought what was
	// pushed before this node could hear it.
	fresh   time.Duration
	greeted bool // there was such a one, or a link has led to one that is to come
	settled settled
}

// want is a sync to come, and what is known of the last one.
type want struct {
	reasons
	due time.Duration
	// from has passed on what led to it, and may be asked where the peer itself cannot.
	from ID
	// asked are the reasons of the sync that runs. When it began, this node held
	// what held says, and had heard of the peer what heard says.
	asked reasons
	held  wire.Sets
	heard origin
	// last is when the last sync ended, pause the least time up to the next.
	last, pause time.Duration
}

// reasons are why a sync is to come.
type reasons struct {
	// gap: pushes of the peer are missing. more: it said that there is more. sets, if
	// not nil, are what it holds.
	gap, more bool
	sets      *wire.Sets
	// first: what the peer has pushed before this node heard it is missing, as of
	// the time since. own: the peer has told so itself, and no other one has passed
	// it on. What it has written just now no other one may hold.
	first, own bool
	since      time.Duration
}

// any reports whether there is a reason for a sync.
func (r *reasons) any() bool { return r.gap || r.more || r.first || r.sets != nil }

// again adds reasons that a sync has not done away with.
func (r *reasons) again(of reasons) {
	r.gap, r.more = r.gap || of.gap, r.more || of.more
	if of.first {
		r.first, r.own, r.since = true, of.own, of.since
	}
	if r.sets == nil {
		r.sets = of.sets
	}
}

const (
	// stalledSync is after what time another sync begins beside one that runs. What
	// comes in such a time over a slow link is little, so that hardly a record comes twice.
	stalledSync = 5 * time.Second
	// maxHastened is how many syncs that pushes brought about run at once, at most.
	maxHastened = 4
	// settling is the least time from the beginning of a sync to the next one that
	// only newly heard members lead to. Within it a node comes to hear all that it
	// has links to, so that the next one is for all of them.
	settling = time.Second
)

// heard notes a push.
func (h *hastening) heard(set *Set, from, by ID, m *wire.PushMessage) {
	now := set.ns.node.elapsed()
	var equal, differ bool
	var ours wire.Sets
	if m.Kind == wire.PushDigest {
		ours = set.digests()
		equal = set.told(ours, m.Sets)
		differ = !equal && set.quiet(now)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.origins == nil {
		h.origins = map[ID]*origin{}
	}
	o := h.origins[by]
	if o == nil {
		if len(h.origins) >= maxOrigins {
			return // syncs at intervals bring what is lost
		}
		o = &origin{}
		h.origins[by] = o
	}
	gap, first := o.hear(m)
	if equal { // what was lost has come otherwise
		gap, first, o.missing = false, false, 0
	}
	if w := h.wants[by]; w == nil && !gap && !first && !differ && m.Kind != wire.PushMore {
		return
	}
	h.want(set, by, from, now, func(w *want) {
		w.gap, w.more = gap, w.more || m.Kind == wire.PushMore
		if first {
			w.first, w.own, w.since = true, from == by, now
		}
		if m.Kind == wire.PushDigest {
			w.sets = nil
			if differ && !h.settled.has(ours, m.Sets) {
				w.sets = &m.Sets
			}
		}
	})
}

// want changes the reasons for a sync with a member. mu is held.
func (h *hastening) want(set *Set, with, from ID, now time.Duration, change func(*want)) {
	p := &set.ns.node.Push
	w := h.wants[with]
	if w == nil {
		if h.wants == nil {
			h.wants = map[ID]*want{}
		}
		w = &want{pause: p.Pause, last: -p.Pause}
		h.wants[with] = w
	}
	was := w.any()
	w.from = from
	if change(w); !was && w.any() {
		w.due = max(now+set.ns.node.jittered(p.Pause/4, ForPush), w.last+w.pause)
		if h.fresh > 0 && !w.gap && !w.more && w.sets == nil {
			w.due = max(w.due, h.fresh+settling)
		}
		set.pushable()
	}
}

// unknown notes that a member has passed on a push of one that this node does not
// know. The member has a later list, which a sync brings, or an earlier one, which
// a sync ends.
func (h *hastening) unknown(set *Set, from ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.want(set, from, from, set.ns.node.elapsed(), func(w *want) { w.more = true })
}

// Linked tells that there is a link to a member, to which there was none: the node was
// away, or the member was. The digest tells whether anything is missing. What a set
// has missed before it was opened the first link to one that may hold it brings at once.
func (set *Set) Linked(with ID) {
	if !set.ns.node.Push.On || !set.ns.Members().admits(with, set.ns.node.Now()) {
		return
	}
	set.retell()
	if !set.With(with) { // it would deny it
		return
	}
	h := &set.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.greeted {
		return
	}
	h.greeted = true
	now := set.ns.node.elapsed()
	h.want(set, with, with, now, func(w *want) { w.first, w.since = true, now })
	// A node that has joined is about to sync with that member anyway.
	h.wants[with].due += set.ns.node.Push.Pause
}

// NextSync is the peer that this node is to sync with now because of pushes. It
// also gives another one for where that cannot be reached; HastenedDone must
// follow. It says how long to wait before it is asked again, also where there is
// such a peer; 0: for good. Config.Pushable may tell the driver before.
func (set *Set) NextSync() (with, or ID, wait time.Duration) {
	now := set.ns.node.elapsed()
	h := &set.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	h.prune(set)
	if wait, free := h.free(now); !free {
		return "", "", wait
	}
	for id, w := range h.wants {
		if _, running := h.running[id]; running {
			continue
		}
		if w.sets != nil && *w.sets == set.digests() {
			w.sets, w.gap, w.first = nil, false, false
			h.origins[id].missing = 0
		}
		switch {
		case !w.any():
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
	w := h.wants[with]
	w.asked, w.reasons, w.held = w.reasons, reasons{}, set.digests()
	if o := h.origins[with]; o != nil {
		w.heard = *o
	}
	if h.running == nil {
		h.running = map[ID]time.Duration{}
	}
	h.running[with] = now
	wait, _ = h.free(now)
	return with, or, wait
}

// free reports whether a sync may begin, or how long to wait for that; 0: until one
// ends. Here and in those that follow, mu is held.
func (h *hastening) free(now time.Duration) (wait time.Duration, free bool) {
	if len(h.running) >= maxHastened {
		return 0, false
	}
	for _, begun := range h.running {
		wait = max(wait, begun+stalledSync-now)
	}
	return wait, wait <= 0
}

// prune forgets what was heard of former members.
func (h *hastening) prune(set *Set) {
	members := set.ns.Members()
	if h.members == members {
		return
	}
	h.members = members
	for id := range h.origins {
		if !members.Has(id, RoleRead) {
			delete(h.origins, id)
		}
	}
	for id := range h.wants {
		if !members.Has(id, RoleRead) {
			delete(h.wants, id)
		}
	}
}

// HastenedDone tells how the sync that NextSync gave has ended, and by which of the two
// peers. One that failed is tried again, ever later, until it is left to the syncs at
// intervals.
func (set *Set) HastenedDone(with, by ID, err error) {
	p := &set.ns.node.Push
	h := &set.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.running[with]
	delete(h.running, with)
	defer set.pushable()
	w := h.wants[with]
	if w == nil { // it is a member no more
		return
	}
	w.last = set.ns.node.elapsed()
	switch {
	case !failed(err):
		w.pause, h.fresh, h.greeted = p.Pause, began, true
		if o := h.origins[with]; o != nil {
			o.brought(&w.heard)
			w.gap = o.missing != 0
		}
		for id, w := range h.wants {
			w.first = w.first && (w.since > began || w.own && id != with)
		}
		// A sync with the other peer does not show what the reported sets would have
		// brought. The next digest leads to another sync.
		if ours := set.digests(); with == by && w.asked.sets != nil && ours == w.held {
			h.settled.note(ours, *w.asked.sets)
		}
	case w.pause < max(set.ns.node.Interval, p.Pause<<6):
		w.pause *= 2
		w.again(w.asked)
	default:
		w.pause = p.Pause
	}
	w.asked = reasons{}
	if w.any() {
		w.due = max(w.due, w.last+w.pause)
	}
}

// failed reports whether a sync has not run to its end. One in which records were declined
// has: all others have travelled.
func failed(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrRejected)
}

// settled are sets of other members that differ from this node's, and of which a
// sync brought nothing. A sync would bring nothing from all members that hold the
// same.
type settled struct {
	ours   wire.Sets
	theirs []wire.Sets // the oldest first, at most maxSettled
}

// maxSettled is for how many sets it is remembered that they stay different.
const maxSettled = 64

func (s *settled) has(ours, theirs wire.Sets) bool {
	return s.ours == ours && slices.Contains(s.theirs, theirs)
}

func (s *settled) note(ours, theirs wire.Sets) {
	if s.ours != ours {
		*s = settled{ours: ours}
	}
	if s.has(ours, theirs) {
		return
	}
	if len(s.theirs) >= maxSettled {
		s.theirs = slices.Delete(s.theirs, 0, 1)
	}
	s.theirs = append(s.theirs, theirs)
}
