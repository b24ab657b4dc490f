package check

import (
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Wrong is how much of what a node keeps of its records was not theirs: sums of ranges,
// numbers of records among these, and cells.
type Wrong struct{ Sums, Numbers, Cells int }

// Any reports whether something is wrong.
func (w Wrong) Any() bool { return w != Wrong{} }

// wound is since when a node keeps something wrong that a sync has met. That is wrong
// cells, and whatever let a sync come to no proof. 0: not.
type wound struct{ cells, unproved time.Duration }

// auditSlack is how soon an audit follows that mends both. Digests of ranges are mended by
// the sync itself. Only two things may keep that from its proof: a number of records that
// is kept wrong, and an empty side, which is sent everything.
const auditSlack = 5 * time.Second

// healed judges what a session did about damage: the rules healed and count.
func (h *History) healed(s *Sync) {
	w := h.wounds[s.Node]
	r := &s.Report.Repair
	wrong := s.Wrong[0]
	if s.Damaged >= max(w.cells, w.unproved) {
		w = wound{} // it is another fault
	}
	switch {
	case s.Unproved:
		if wrong.Numbers+s.Wrong[1].Numbers == 0 && !s.Struck && s.Report.Method != wire.MethodAll && len(s.Before[0]) > 0 && len(s.Before[1]) > 0 {
			h.found.say(Healed, s.Node, "", "a sync with node %d has come to no proof, and all numbers of records are right", s.Peer)
		}
		if w.unproved > 0 && s.Begun > w.unproved+auditSlack && wrong.Any() && !s.Struck {
			h.found.say(Healed, s.Node, "", "a sync at %v has come to no proof since something is kept wrong here, and so has one at %v, with node %d", w.unproved, s.Begun, s.Peer)
		}
		if w.unproved == 0 && wrong.Any() {
			w.unproved = s.At
		}
		h.wounds[s.Node] = w
		return
	case s.Failed:
		return
	}
	w.unproved = 0
	hurt := s.Struck || s.Stray || wrong.Any() || s.Wrong[1].Any()
	if !s.DryRun && r.Needed() && r.Left == 0 && s.Report.Rejected == 0 && s.Gives && s.Gets && !s.Report.Verified {
		h.found.say(Healed, s.Node, "", "a sync with node %d repaired something (%v) and is not verified", s.Peer, r)
	}
	if s.Compared && !s.Struck && r.Left == 0 {
		if r.Digests > wrong.Sums || r.Digests < wrong.Sums-s.Alike {
			h.found.say(Count, s.Node, "", "a sync with node %d counts %d sums of ranges as kept wrong, of %d that were", s.Peer, r.Digests, wrong.Sums)
		}
		if s.Still.Sums > s.Alike {
			h.found.say(Healed, s.Node, "", "a sync with node %d has left the sums of %d ranges wrong", s.Peer, s.Still.Sums)
		}
	}
	if !hurt && r.Sketch {
		h.found.say(Count, s.Node, "", "a sync with node %d says that a sketch is wrong, and none of the two is", s.Peer)
	}
	if !hurt && s.Compared && r.Collisions != s.Collisions {
		h.found.say(Count, s.Node, "", "a sync with node %d counts %d collisions of checksums, of %d", s.Peer, r.Collisions, s.Collisions)
	}
	switch {
	case s.Still.Cells == 0:
		w.cells = 0
	case !r.Sketch || !s.Compared || wrong.Cells == 0 || s.Struck: // cells of a part are made for it alone
	case w.cells == 0:
		w.cells = s.At
	case s.Begun > w.cells+auditSlack:
		h.found.say(Healed, s.Node, "", "a sync at %v has met cells that are kept wrong here, and so has one at %v, with node %d", w.cells, s.Begun, s.Peer)
	}
	h.wounds[s.Node] = w
}

// Unhealed notes that what a node keeps was still wrong when all nodes were equal, and
// everything had been quiet.
func (h *History) Unhealed(node, ranges int) {
	h.found.say(Healed, node, "", "all nodes are equal, and it keeps wrong sums of %d ranges", ranges)
}
