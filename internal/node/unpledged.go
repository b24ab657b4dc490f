package node

import (
	"context"
	"errors"
	"maps"

	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/watermark"
)

// A member that makes no pledges, such as a small client, says so beside its addresses. The others
// then do not wait for it (docs/decisions/0068-members-without-pledges.md). It promises nothing:
// what it gives is taken as what a writer routes (keepPromise), and nobody recovers by it. Only the
// member can say so, since what it alone holds may be refused.

// pledges reports whether a member is one that the others wait for.
func (ns *Namespace) pledges(id ID) bool {
	none := ns.unpledged.Load()
	return none == nil || !(*none)[id]
}

// readUnpledged reads which members make no pledges. The namespace is being opened.
func (ns *Namespace) readUnpledged(ctx context.Context) error {
	none := map[ID]bool{}
	for r, err := range ns.Control.OfKind(ctx, membership.KindAddresses) {
		if err != nil {
			return err
		}
		if a, err := membership.ReadAnnouncement(r.Value); err == nil && a.Unpledged { // it was examined when it came
			none[ID(r.Key[1:])] = true
		}
	}
	ns.unpledged.Store(&none)
	return nil
}

// hearUnpledged takes whether a member makes no pledges. The group is held.
//
// What it gave before, this node has taken as what a pledging member promises. The promise stays
// below all of that until the others have met a snapshot of from now on.
func (ns *Namespace) hearUnpledged(id ID, unpledged bool) (failed error) {
	if ns.pledges(id) != unpledged {
		return nil
	}
	none := maps.Clone(*ns.unpledged.Load())
	if none[id] = unpledged; !unpledged {
		delete(none, id)
	}
	ns.unpledged.Store(&none)
	failed = ns.holdersChanged()
	for _, set := range ns.Sets() {
		switch {
		case !unpledged:
		case id == ns.node.ID: // a client had this node's identity: the members have gone on without what is here
			failed = errors.Join(failed, set.gc.Update(func(w *watermark.Watermark) bool { w.Recover(true); return true }))
		default:
			failed = errors.Join(failed, set.gc.Hold(1, 0))
		}
	}
	ns.relisted()
	return failed
}
