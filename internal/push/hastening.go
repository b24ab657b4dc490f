package push

import (
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// hastening decides which syncs pushes bring about. A push that was lost shows as a
// gap in its origin's numbers. A member reports what was not pushed. Digests of
// sets that have been quiet differ. Each leads to a sync with the peer that knows,
// a little later. These syncs go one at a time while they end soon, and not more
// often than once in a pause. What is equal by then needs no sync.
type hastening struct {
	mu      sync.Mutex // guards what follows
	members Members    // the list by which origins and wants were looked through last
	origins map[ID]*origin
	wants   map[ID]*want
	running map[ID]time.Duration // since when
	// fresh is when the last sync began that did not fail. It has brought what was
	// pushed before this node could hear it.
	fresh   time.Duration
	greeted bool // there was such a one, or a link has led to one that is due
	differ  differing
}

// want is a sync that is due, and what is known of the last one.
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

// reasons are why a sync is due.
type reasons struct {
	// gap: pushes of the peer are missing. more: it said that there is more. sets, if
	// not nil, are what it holds.
	gap, more bool
	sets      *wire.Sets
	// first: what the peer has pushed before this node heard it is missing, as of
	// the time since. own: the peer has said so itself, and no other one has passed
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
	// stalledSync is after what time another sync begins while one runs. A slow link
	// brings little in such a time, so that hardly a record comes twice.
	stalledSync = 5 * time.Second
	// maxHastened is how many syncs that pushes brought about run at once, at most.
	maxHastened = 4
	// joining is the least time from the beginning of a sync to the next one that only
	// newly heard members lead to. Within it a node hears all that it has links to, so
	// that the next one is for all of them.
	joining = time.Second
)

// Heard notes a push of the member by, which the member from has passed on.
func (p *Pusher) Heard(from, by ID, m *wire.PushMessage) {
	h, now := &p.hastening, p.set.Now()
	var equal, differ bool
	var ours wire.Sets
	if m.Kind == wire.PushDigest {
		ours = p.set.Digests()
		equal = p.shared(ours, m.Sets)
		differ = !equal && p.quiet(now)
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
	if equal { // what was lost was brought otherwise
		gap, first, o.missing = false, false, 0
	}
	if w := h.wants[by]; w == nil && !gap && !first && !differ && m.Kind != wire.PushMore {
		return
	}
	p.want(by, from, now, func(w *want) {
		w.gap, w.more = gap, w.more || m.Kind == wire.PushMore
		if first {
			w.first, w.own, w.since = true, from == by, now
		}
		if m.Kind == wire.PushDigest {
			w.sets = nil
			if differ && !h.differ.has(ours, m.Sets) {
				w.sets = &m.Sets
			}
		}
	})
}

// want changes the reasons for a sync with a member. mu is held.
func (p *Pusher) want(with, from ID, now time.Duration, change func(*want)) {
	h := &p.hastening
	w := h.wants[with]
	if w == nil {
		if h.wants == nil {
			h.wants = map[ID]*want{}
		}
		w = &want{pause: Pause, last: -Pause}
		h.wants[with] = w
	}
	was := w.any()
	w.from = from
	if change(w); !was && w.any() {
		w.due = max(now+p.set.Jitter(Pause/4), w.last+w.pause)
		if h.fresh > 0 && !w.gap && !w.more && w.sets == nil {
			w.due = max(w.due, h.fresh+joining)
		}
		p.set.Wake()
	}
}

// Unknown notes that a member has passed on a push of one that this node does not
// know. The member has a later list, which a sync brings, or an earlier one, which
// a sync ends.
func (p *Pusher) Unknown(from ID) {
	p.hastening.mu.Lock()
	defer p.hastening.mu.Unlock()
	p.want(from, from, p.set.Now(), func(w *want) { w.more = true })
}

// Linked says that there is a link to a member, to which there was none: the node was
// away, or the member was. The digest shows whether anything is missing. What a set
// has missed before it was opened, the first link to one that may hold it brings at once.
func (p *Pusher) Linked(with ID) {
	if !p.set.Config.On || !p.set.Admits(with) {
		return
	}
	now := p.set.Now()
	p.outbox.mu.Lock()
	p.stir(now)
	p.outbox.mu.Unlock()
	if !p.set.With(with) { // it would deny it
		return
	}
	h := &p.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.greeted {
		return
	}
	h.greeted = true
	p.want(with, with, now, func(w *want) { w.first, w.since = true, now })
	// A node that has joined is about to sync with that member anyway.
	h.wants[with].due += Pause
}

// NextSync is the peer that this node is to sync with now because of pushes. It also
// gives another one for where that cannot be reached; SyncDone must follow. It says how
// long to wait before it is asked again, also where there is such a peer; 0: until
// Source.Wake is called.
func (p *Pusher) NextSync() (with, or ID, wait time.Duration) {
	now := p.set.Now()
	h := &p.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	h.prune(p.set.Members())
	if wait, free := h.free(now); !free {
		return "", "", wait
	}
	for id, w := range h.wants {
		if _, running := h.running[id]; running {
			continue
		}
		if w.sets != nil && *w.sets == p.set.Digests() {
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
	w.asked, w.reasons, w.held = w.reasons, reasons{}, p.set.Digests()
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
func (h *hastening) prune(members Members) {
	if h.members == members {
		return
	}
	h.members = members
	for id := range h.origins {
		if !members.Has(id, roster.RoleRead) {
			delete(h.origins, id)
		}
	}
	for id := range h.wants {
		if !members.Has(id, roster.RoleRead) {
			delete(h.wants, id)
		}
	}
}

// SyncDone says how the sync that NextSync gave has ended, and with which of the two
// peers it was. One that failed is tried again, ever later, until it is left to the syncs
// at intervals.
func (p *Pusher) SyncDone(with, by ID, err error) {
	h := &p.hastening
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.running[with]
	delete(h.running, with)
	defer p.set.Wake()
	w := h.wants[with]
	if w == nil { // it is a member no more
		return
	}
	w.last = p.set.Now()
	switch {
	case !p.set.Failed(err):
		w.pause, h.fresh, h.greeted = Pause, began, true
		if o := h.origins[with]; o != nil {
			o.brought(&w.heard)
			w.gap = o.missing != 0
		}
		for id, w := range h.wants {
			w.first = w.first && (w.since > began || w.own && id != with)
		}
		// A sync with the other peer does not show what the reported sets would have
		// brought. The next digest leads to another sync.
		if ours := p.set.Digests(); with == by && w.asked.sets != nil && ours == w.held {
			h.differ.note(ours, *w.asked.sets)
		}
	case w.pause < max(p.set.Interval(), Pause<<6):
		w.pause *= 2
		w.again(w.asked)
	default:
		w.pause = Pause
	}
	w.asked = reasons{}
	if w.any() {
		w.due = max(w.due, w.last+w.pause)
	}
}

// differing are sets of other members that differ from this node's, and of which a sync
// brought nothing. A sync would bring nothing from all members that hold the same.
type differing struct {
	ours   wire.Sets
	theirs []wire.Sets // the oldest first, at most maxDiffering
}

// maxDiffering is for how many sets it is remembered that they stay different.
const maxDiffering = 64

func (d *differing) has(ours, theirs wire.Sets) bool {
	return d.ours == ours && slices.Contains(d.theirs, theirs)
}

func (d *differing) note(ours, theirs wire.Sets) {
	if d.ours != ours {
		*d = differing{ours: ours}
	}
	if d.has(ours, theirs) {
		return
	}
	if len(d.theirs) >= maxDiffering {
		d.theirs = slices.Delete(d.theirs, 0, 1)
	}
	d.theirs = append(d.theirs, theirs)
}

// origin is what was heard of a member's pushes.
type origin struct {
	incarnation, last uint64
	// missing has bit i set if push last−i has not arrived.
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

// brought notes that a sync has brought all pushes up to what was heard earlier.
func (o *origin) brought(earlier *origin) {
	if n := o.last - earlier.last; o.incarnation == earlier.incarnation && n < 64 {
		o.missing &= 1<<n - 1
	}
}
