package watermark

import (
	"cmp"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Watermark is what a node knows of what the members hold, and what follows from
// it. It is not safe for concurrent use. Methods that report a change have changed
// the State, which is to be durable before anything rests on it; see Restore.
//
// Four rules make it safe; docs/decisions/0020-watermark.md has the histories that
// each of them answers.
//
//   - known, and the pledges of others, count under one list of members alone:
//     the one that both sides of a sync greeted with, and that holds now.
//   - A promise is made of what is known under the list as it is. It does not carry
//     over to the next one, nor to the process that follows a restored copy.
//   - The floor follows the node's own promise: a node keeps out only what it has
//     promised to hold.
//   - What a member says that others hold counts only if it may write. A member
//     that only reads can remove nothing, so it must not make others remove either.
type Watermark struct {
	state State

	self roster.ID
	// sharded: the set is a shard, which ends to recover by its row.
	sharded bool
	list    [16]byte
	// active are the members under the list that have not lapsed, by id.
	active []roster.ID
	// alone: there is no other member, also one that has lapsed.
	alone bool
	// known are readings of the members' clocks. This node holds, or dominates, or
	// has collected all that the member held in a snapshot with that reading.
	known map[roster.ID]dbadapter.Timestamp
	// met are the members that this node was found equal with since it recovers.
	met map[roster.ID]bool
	// said are the last pledges of the members, under whatever list.
	said map[roster.ID]*said
	// refused is the greatest floor for which a peer has declined records that
	// this node holds.
	refused dbadapter.Timestamp
	// raised is the floor up to which this node has collected under the list. The others
	// prove it by what this node has promised.
	raised dbadapter.Timestamp
	// basis changes with what known and proved records rest on.
	basis Basis
	// resumed: the last pledge is of an earlier process. What it says of third
	// members counts for its peers no more, since the process may be of a copy.
	resumed bool
	// imports are those that run: no promise reaches the earliest date of one.
	imports map[*Import]bool
}

// said is a member's pledge, with the version of its record.
type said struct {
	Pledge
	at dbadapter.Version
}

// New is the watermark of a process that begins with what is durable. sharded: the
// set is a shard, which ends to recover by its row (package quorum).
func New(self roster.ID, sharded bool, s State) Watermark {
	return Watermark{self: self, sharded: sharded, state: s.Clone()}
}

// State is what must be durable.
func (w *Watermark) State() State { return w.state.Clone() }

// Restore takes back a change that could not be made durable, to the state before. A
// recovery, and a loss of the right to write, stay: they are the safe side. Save them
// with the next change.
func (w *Watermark) Restore(before State) {
	now := w.state
	before = before.Clone()
	before.Recovering, before.Lost = before.Recovering || now.Recovering, before.Lost || now.Lost
	before.Right, before.RightLost = now.Right, cmp.Or(now.RightLost, before.RightLost)
	w.state = before
}

// Recovering reports whether the node may lack what it, or the members, once held.
func (w *Watermark) Recovering() bool { return w.state.Recovering }

// UpTo is up to when no record with a date is taken: members may have collected up to it.
func (w *Watermark) UpTo() dbadapter.Timestamp { return max(w.state.Floor, w.state.Pledged) }

// Basis is what a reading of the clock, or a watermark, rests on.
type Basis struct {
	// era grows each time known starts anew: what was begun before does not count.
	era uint64
	// backdated is how often records were written that are earlier than a reading. A sync
	// that has begun before does not prove them.
	backdated uint64
}

// Basis is that of now.
func (w *Watermark) Basis() Basis { return w.basis }

// Still reports whether what rests on a basis counts now: nothing was forgotten since.
func (w *Watermark) Still(b Basis) bool { return w.basis.era == b.era }

// Enforced is the floor that records are held against.
func (w *Watermark) Enforced() dbadapter.Timestamp {
	if w.state.Recovering {
		return 0
	}
	return w.state.Floor
}

// KeepsOut reports whether a floor keeps out a record of that version whose key is
// free. A node that only reads goes by the floor that a node which may write has
// greeted with. It follows what that one holds still, though it has collected as
// far itself. What a reader keeps out counts with no member, and the two would
// differ for good.
func KeepsOut(floor, version dbadapter.Timestamp, follows bool, theirs dbadapter.Timestamp) bool {
	return version <= floor && !(follows && theirs != NoFloor && version <= theirs)
}

// NoFloor is the floor that a node greets with while it recovers. It may lack what
// it held once, and its snapshot all the same has what it has written.
const NoFloor = ^dbadapter.Timestamp(0)

// Greeted is the floor that this node greets with.
func (w *Watermark) Greeted() dbadapter.Timestamp {
	if w.state.Recovering {
		return NoFloor
	}
	return w.state.Floor
}

// anew forgets what is known.
func (w *Watermark) anew() {
	w.known, w.met = map[roster.ID]dbadapter.Timestamp{}, map[roster.ID]bool{}
	w.refused, w.raised = 0, 0
	w.basis.era++
}

// Recover begins a recovery. lost: something was lost, or replaced by what a copy holds.
func (w *Watermark) Recover(lost bool) {
	w.state.Recovering = true
	w.state.Lost = w.state.Lost || lost && w.sharded
	w.anew()
}

// Whole ends the recovery of a shard that is whole by its row. Up to a floor its other
// hosts may have collected.
func (w *Watermark) Whole(floor dbadapter.Timestamp) (changed bool) {
	changed = w.state.Recovering || floor > w.state.Floor
	w.state.Floor = max(w.state.Floor, floor)
	w.state.Recovering, w.state.Lost = false, false
	return changed
}

// Members is the list of members as a watermark sees it.
type Members struct {
	// List is a digest of the list, and of Active.
	List [16]byte
	// Active are those that the watermark waits for, by id.
	Active []roster.ID
	// Alone: there is no other member, also one that has lapsed.
	Alone bool
	// Epoch is how often the members have gone on without this node.
	Epoch uint64
}

// SetMembers takes the list of members as it is now, and a reading of the clock. No
// greeting under this list has given that reading yet, unless the list is the one
// from before a restart.
func (w *Watermark) SetMembers(m Members, reading dbadapter.Timestamp) (changed bool) {
	if m.List == w.list && w.known != nil {
		return false
	}
	w.list, w.active, w.alone = m.List, m.Active, m.Alone
	w.anew()
	changed = w.rehold(reading)
	if m.Epoch > w.state.Epoch {
		w.state.Epoch = m.Epoch
		w.Recover(false)
		changed = true
	}
	return w.RecoverAlone() || changed
}

// rehold follows a change of the list. What members know of this node's clock
// starts anew with it. A reading that they know from now on is of a snapshot that
// holds what the holds are for. That is so even where the clock, before a restamp,
// had given later ones.
func (w *Watermark) rehold(reading dbadapter.Timestamp) (changed bool) {
	if w.state.List == w.list {
		return false
	}
	w.state.List = w.list
	for i := range w.state.Holds {
		w.state.Holds[i].At = min(w.state.Holds[i].At, reading)
	}
	return len(w.state.Holds) > 0
}

// Receive takes a member's pledge from its record. It may be what this node itself has
// said, and does not remember. Then this node is a copy from before: changed
// reports true, and the clock must exceed the pledge's version.
func (w *Watermark) Receive(id roster.ID, s *Pledge, at dbadapter.Version) (changed bool) {
	if w.said == nil {
		w.said = map[roster.ID]*said{}
	}
	if held := w.said[id]; held != nil && held.at.Compare(at) >= 0 {
		return false
	}
	w.said[id] = &said{*s, at}
	if id != w.self || s.Serial <= w.state.Serial {
		return false
	}
	w.state.Serial, w.state.Pledged = s.Serial, max(w.state.Pledged, s.Promised)
	w.Recover(true)
	return true
}

// Resume takes over what this node knew when it made its last pledge, after a
// restart. All that it held then it holds now.
func (w *Watermark) Resume() {
	s := w.under(w.self)
	if s == nil || w.state.Recovering {
		return
	}
	w.resumed = true
	for i, id := range w.active {
		w.known[id] = max(w.known[id], s.Vector[i])
	}
}

// under is a member's pledge, if it was made under the list as it is now. One
// that says more than its version's time allows counts for nothing.
func (w *Watermark) under(id roster.ID) *said {
	s := w.said[id]
	if s == nil || s.List != w.list || len(s.Vector) != len(w.active) ||
		max(s.Promised, s.Wanted, slices.Max(s.Vector)) > s.at.Clock {
		return nil
	}
	return s
}

// promised is up to when a member promises that it holds what every member held.
func (w *Watermark) promised(id roster.ID) dbadapter.Timestamp {
	if s := w.under(id); s != nil {
		return s.Promised
	}
	return 0
}

// HasOthers reports whether another member takes part.
func (w *Watermark) HasOthers() bool {
	return slices.ContainsFunc(w.active, func(id roster.ID) bool { return id != w.self })
}

// Counts reports whether the members wait for this node.
func (w *Watermark) Counts() bool { return slices.Contains(w.active, w.self) }

// Promise is up to when this node holds what every member held, or will have written, at a
// reading of its clock: its later versions are greater.
func (w *Watermark) Promise(tau dbadapter.Timestamp) dbadapter.Timestamp {
	if w.state.Recovering || !w.Counts() {
		return 0
	}
	p := w.least(tau)
	for _, h := range w.state.Holds {
		if !w.covered(h) {
			p = min(p, h.Clock-1)
		}
	}
	for im := range w.imports {
		p = min(p, im.earliest-1)
	}
	return p
}

// least is up to when this node holds what each member held, but for dated imports.
func (w *Watermark) least(tau dbadapter.Timestamp) dbadapter.Timestamp {
	for _, id := range w.active {
		if id != w.self {
			tau = min(tau, w.known[id])
		}
	}
	return tau
}

// others is the least promise of the other active members.
func (w *Watermark) others() dbadapter.Timestamp {
	least := ^dbadapter.Timestamp(0)
	for _, id := range w.active {
		if id != w.self {
			least = min(least, w.promised(id))
		}
	}
	return least
}

// At is the watermark at a reading of the clock: what is not later, all members hold, or
// dominate.
func (w *Watermark) At(tau dbadapter.Timestamp) dbadapter.Timestamp {
	return min(w.Promise(tau), w.others())
}

// Proven reports whether a peer's floor is one that it can have: all members have
// promised to hold what is not later. A node that recovers relies on those that do not;
// two restored copies would wait for one another for ever.
func (w *Watermark) Proven(floor, tau dbadapter.Timestamp) bool {
	if !w.state.Recovering {
		return floor <= w.At(tau)
	}
	for _, id := range w.active {
		if s := w.under(id); id != w.self && (s == nil || !s.Recovering) && floor > w.promised(id) {
			return false
		}
	}
	return true
}

// Sync is a sync of the whole namespace, both ways and under one list, that has
// run to its end.
type Sync struct {
	Peer    roster.ID
	Writes  bool  // the peer may write, and pledges
	Pledges bool  // the peer pledges: it does not drop what it has
	Basis   Basis // when it began
	// Incarnation, Tau and Floor are those that the peer greeted with. Tau is 0 where it
	// says nothing that this node can believe.
	Incarnation uint64
	Tau, Floor  dbadapter.Timestamp
	// Clean: no tombstone, nothing that expires and nothing from the future was
	// declined, but for the floor.
	Clean bool
	// Verified: the sets were proved equal.
	Verified bool
	// Latest is the greatest version that this node holds.
	Latest dbadapter.Timestamp
}

// Synced takes what a sync has shown that began with a reading of this node's clock.
func (w *Watermark) Synced(s *Sync, tau dbadapter.Timestamp) (changed bool) {
	if !w.Still(s.Basis) {
		return false
	}
	changed = w.synced(s, tau)
	// With nothing later there is nothing to prove.
	if s.Verified && s.Pledges && s.Latest > w.state.Proved {
		changed = w.prove(tau, s.Basis) || changed
	}
	return changed
}

func (w *Watermark) synced(s *Sync, tau dbadapter.Timestamp) (changed bool) {
	if s.Clean && s.Tau != 0 {
		w.known[s.Peer] = max(w.known[s.Peer], s.Tau)
		// What the peer knew when it made its pledge, its snapshot holds. A
		// process that runs since may have been started from a copy that does not.
		if k := w.under(s.Peer); k != nil && s.Writes && k.at.Clock <= s.Tau && k.at.Incarnation == s.Incarnation {
			for i, id := range w.active {
				if id != w.self {
					w.known[id] = max(w.known[id], k.Vector[i])
				}
			}
		}
	}
	if !s.Verified {
		return false
	}
	if w.state.Recovering {
		w.met[s.Peer] = true
		whole := s.Writes && s.Floor != NoFloor
		if !whole && (w.sharded || !w.metAll()) {
			return false
		}
		if whole && s.Floor > w.state.Floor && w.Proven(s.Floor, tau) {
			w.state.Floor, changed = s.Floor, true // this node holds what the peer holds: it keeps out what the peer does
		}
		changed = changed || !w.sharded
		w.state.Recovering = w.sharded
		return changed
	}
	if s.Floor > w.state.Floor && s.Floor != NoFloor && w.Counts() && w.Proven(s.Floor, tau) {
		w.state.Floor = s.Floor
		return true
	}
	return false
}

// RecoverAlone ends the recovery of a node that has no other member to catch up with.
func (w *Watermark) RecoverAlone() (changed bool) {
	changed = !w.sharded && w.state.Recovering && (w.alone || w.Counts() && len(w.active) == 1)
	w.state.Recovering = w.state.Recovering && !changed
	return changed
}

// metAll reports whether this node was found equal with each other member.
func (w *Watermark) metAll() bool {
	for _, id := range w.active {
		if id != w.self && !w.met[id] {
			return false
		}
	}
	return true
}

// LeftToReaders reports whether this node recovers, and no other member that may
// write can help. Each of those that it waits for recovers, too. This node
// then has no other floor to go by than that of a reader. It would be kept out for
// ever by what was collected before. It recovers by an act of a person, which no
// reader can bring about.
func (w *Watermark) LeftToReaders(writes func(roster.ID) bool) bool {
	return w.state.Recovering && !slices.ContainsFunc(w.active, func(id roster.ID) bool {
		s := w.under(id)
		return id != w.self && writes(id) && (s == nil || !s.Recovering)
	})
}

// DeclinedFor notes that a peer has declined, for its floor, records that this node
// holds, and that the floor is not proven yet.
func (w *Watermark) DeclinedFor(floor, tau dbadapter.Timestamp) {
	w.refused = max(w.refused, min(floor, tau))
}

// RaiseFloor makes a floor this node's, which is about to collect up to it. A node
// that recovers raises none.
func (w *Watermark) RaiseFloor(floor dbadapter.Timestamp) (changed bool) {
	if w.state.Recovering || floor <= w.state.Floor {
		return false
	}
	w.state.Floor, w.raised = floor, floor
	return true
}
