package node

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// watermark is what a node knows of what the members hold, and what follows from
// it. It says up to which time the node vouches to hold what every member held, and
// up to which time all members do. From that follows which tombstones can go. It
// holds no store, no clock and no lock. Its caller guards it, makes what Vouched
// holds durable before anything rests on it, and hands in readings of its clock.
//
// Four rules make it safe; docs/decisions/0020-watermark.md has the histories that
// each of them answers.
//
//   - known, and the pledges of others, count under one list of members alone:
//     the one that both sides of a sync greeted with, and that holds now.
//   - A promise is made of what is known under the list as it is. It does not carry
//     over to the next one, nor to the process that follows a restored copy.
//   - The floor follows the node's own promise: a node keeps out only what it has
//     vouched for.
//   - What a member says that others hold counts only if it may write. A member
//     that only reads can remove nothing, so it must not make others remove either.
type watermark struct {
	Vouched

	self ID
	// sharded: the set is a shard, which ends to recover by its row.
	sharded bool
	list    [16]byte
	// active are the members under the list that have not lapsed, by id.
	active []ID
	// alone: there is no other member, also one that has lapsed.
	alone bool
	// known are readings of the members' clocks. This node holds, or dominates, or
	// has collected all that the member held in a snapshot with that reading.
	known map[ID]dbadapter.Timestamp
	// met are the members that this node was found equal with since it recovers.
	met map[ID]bool
	// said are the last pledges of the members, under whatever list.
	said map[ID]*said
	// refused is the greatest floor for which a peer has declined records that
	// this node holds.
	refused dbadapter.Timestamp
	// raised is the floor up to which this node has collected under the list. The others
	// prove it by what this node has promised.
	raised dbadapter.Timestamp
	// era grows each time known starts anew: what was begun before does not count.
	era uint64
	// resumed: the last pledge is of an earlier process. What it says of third
	// members counts for its peers no more, since the process may be of a copy.
	resumed bool
	// backdated is how often records were written that are earlier than a reading: a sync
	// that has begun before does not prove them.
	backdated uint64
	// imports are those that run, each with the earliest date that it has taken: no promise reaches it.
	imports map[*Import]dbadapter.Timestamp
}

// said is a member's pledge, with the version of its record.
type said struct {
	Pledge
	at dbadapter.Version
}

// Vouched is the part of a watermark that must be durable.
type Vouched struct {
	// Floor: no record up to it that the node does not hold is let in. It is at
	// least the time of each tombstone collected, and never falls.
	Floor dbadapter.Timestamp `cbor:"1,keyasint"`
	// Pledged is the greatest promise ever made, or taken over from the inviter,
	// that members may rely on. No dated import is up to it.
	Pledged dbadapter.Timestamp `cbor:"2,keyasint"`
	// Serial is that of the last pledge made.
	Serial uint64 `cbor:"3,keyasint"`
	// Epoch is how often the members have gone on without this node.
	Epoch uint64 `cbor:"4,keyasint"`
	// Recovering: the node may lack what it, or the members, once held. It
	// vouches for nothing, keeps nothing out and collects nothing.
	//
	// Of a shard, what does not recover is whole (package quorum), and it is that by its row.
	Recovering bool `cbor:"5,keyasint"`
	// Holds are the dated and restamped records that members may not hold yet.
	Holds []Hold `cbor:"6,keyasint"`
	// List is the list of members under which Holds count.
	List [16]byte `cbor:"7,keyasint"`
	// Proved: this node's own records up to it were in a set that a sync has proved
	// equal to another member's.
	Proved dbadapter.Timestamp `cbor:"8,keyasint,omitempty"`
	// Right is this node's right to write (roster.List.Right), as it was when it was followed last.
	Right dbadapter.Timestamp `cbor:"9,keyasint,omitempty"`
	// Heard is the reading of the clock when this node heard that it had lost its
	// right. Its own records up to it that are not proved are to be set aside. 0:
	// that is done.
	Heard dbadapter.Timestamp `cbor:"10,keyasint,omitempty"`
	// Lost: it recovers since records were lost, or replaced by those of a copy. Of a shard.
	Lost bool `cbor:"11,keyasint,omitempty"`
}

// Hold is records that keep the promise down: dated imports, or what a restamp
// makes anew. A member's pledge may give At, or a later reading of this node's
// clock. That member has met a snapshot that holds the records from Clock on.
type Hold struct {
	Clock dbadapter.Timestamp `cbor:"1,keyasint"`
	At    dbadapter.Timestamp `cbor:"2,keyasint"`
}

// clone copies v so deeply that changing the copy leaves v alone.
func (v Vouched) clone() Vouched {
	v.Holds = slices.Clone(v.Holds)
	return v
}

// hold adds records that are written until the clock gives a reading. Where there
// are many, the last two are taken together, which holds more back.
func (v *Vouched) hold(clock, at dbadapter.Timestamp) {
	v.Holds = append(v.Holds, Hold{clock, at})
	for n := len(v.Holds); n > maxHolds; n = len(v.Holds) {
		last := v.Holds[n-1]
		v.Holds = v.Holds[:n-1]
		v.Holds[n-2] = Hold{min(v.Holds[n-2].Clock, last.Clock), max(v.Holds[n-2].At, last.At)}
	}
}

// upTo is up to when no record with a date is taken: members may have collected up to it.
func (v *Vouched) upTo() dbadapter.Timestamp { return max(v.Floor, v.Pledged) }

// enforced is the floor that records are held against.
func (w *watermark) enforced() dbadapter.Timestamp {
	if w.Recovering {
		return 0
	}
	return w.Floor
}

// keepsOut reports whether a floor keeps out a record of that version whose key is
// free. A node that only reads goes by the floor that a node which may write has
// greeted with. It follows what that one holds still, though it has collected as
// far itself. What a reader keeps out counts with no member, and the two would
// differ for good.
func keepsOut(floor, version dbadapter.Timestamp, follows bool, theirs dbadapter.Timestamp) bool {
	return version <= floor && !(follows && theirs != recovers && version <= theirs)
}

// recovers is the floor that a node greets with while it recovers. It may lack what
// it held once, and its snapshot all the same has what it has written.
const recovers = ^dbadapter.Timestamp(0)

// greeted is the floor that this node greets with.
func (w *watermark) greeted() dbadapter.Timestamp {
	if w.Recovering {
		return recovers
	}
	return w.Floor
}

// anew forgets what is known.
func (w *watermark) anew() {
	w.known, w.met = map[ID]dbadapter.Timestamp{}, map[ID]bool{}
	w.refused, w.raised = 0, 0
	w.era++
}

// recover begins a recovery.
func (w *watermark) recover() {
	w.Recovering = true
	w.anew()
}

// lose begins a recovery of what was lost, or replaced by that of a copy.
func (w *watermark) lose() {
	w.recover()
	w.Lost = w.sharded
}

// whole ends the recovery of a shard that is whole by its row.
func (w *watermark) whole() (changed bool) {
	changed = w.Recovering
	w.Recovering, w.Lost = false, false
	return changed
}

// relist takes the list of members as it is now: its digest, and its active members
// by id. It takes whether the list has no other member than this node, and how
// often the members have gone on without it. It also takes a reading of the clock.
// No greeting under this list has given that reading yet, unless the list is the
// one from before a restart. It reports whether what is durable has changed.
func (w *watermark) relist(list [16]byte, active []ID, alone bool, epoch uint64, reading dbadapter.Timestamp) (changed bool) {
	if list == w.list && w.known != nil {
		return false
	}
	w.list, w.active, w.alone = list, active, alone
	w.anew()
	changed = w.rehold(reading)
	if epoch > w.Epoch {
		w.Epoch = epoch
		w.recover()
		changed = true
	}
	return w.recoverAlone() || changed
}

// rehold follows a change of the list. What members know of this node's clock
// starts anew with it. A reading that they know from now on is of a snapshot that
// holds what the holds are for. That is so even where the clock, before a restamp,
// had given later ones.
func (w *watermark) rehold(reading dbadapter.Timestamp) (changed bool) {
	if w.List == w.list {
		return false
	}
	w.List = w.list
	for i := range w.Holds {
		w.Holds[i].At = min(w.Holds[i].At, reading)
	}
	return len(w.Holds) > 0
}

// hear takes a member's pledge from its record. It may be what this node itself has
// said, and does not remember. Then this node is a copy from before: changed
// reports true, and the clock must exceed the pledge's version.
func (w *watermark) hear(id ID, s *Pledge, at dbadapter.Version) (changed bool) {
	if w.said == nil {
		w.said = map[ID]*said{}
	}
	if held := w.said[id]; held != nil && held.at.Compare(at) >= 0 {
		return false
	}
	w.said[id] = &said{*s, at}
	if id != w.self || s.Serial <= w.Serial {
		return false
	}
	w.Serial, w.Pledged = s.Serial, max(w.Pledged, s.Promised)
	w.lose()
	return true
}

// resume takes over what this node knew when it made its last pledge, after a
// restart. All that it held then it holds now.
func (w *watermark) resume() {
	s := w.under(w.self)
	if s == nil || w.Recovering {
		return
	}
	w.resumed = true
	for i, id := range w.active {
		w.known[id] = max(w.known[id], s.Vector[i])
	}
}

// under is a member's pledge, if it was made under the list as it is now. One
// that says more than its version's time allows counts for nothing.
func (w *watermark) under(id ID) *said {
	s := w.said[id]
	if s == nil || s.List != w.list || len(s.Vector) != len(w.active) ||
		max(s.Promised, s.Wanted, slices.Max(s.Vector)) > s.at.Clock {
		return nil
	}
	return s
}

// promised is up to when a member vouches that it holds what every member held.
func (w *watermark) promised(id ID) dbadapter.Timestamp {
	if s := w.under(id); s != nil {
		return s.Promised
	}
	return 0
}

// hasOthers reports whether another member takes part.
func (w *watermark) hasOthers() bool {
	return slices.ContainsFunc(w.active, func(id ID) bool { return id != w.self })
}

// counts reports whether the members wait for this node.
func (w *watermark) counts() bool { return slices.Contains(w.active, w.self) }

// promise is what this node vouches for, at a reading of its clock: its later
// versions are greater.
func (w *watermark) promise(tau dbadapter.Timestamp) dbadapter.Timestamp {
	if w.Recovering || !w.counts() {
		return 0
	}
	p := w.least(tau)
	for _, h := range w.Holds {
		if !w.covered(h) {
			p = min(p, h.Clock-1)
		}
	}
	for _, earliest := range w.imports {
		p = min(p, earliest-1)
	}
	return p
}

// least is up to when this node holds what each member held, but for dated imports.
func (w *watermark) least(tau dbadapter.Timestamp) dbadapter.Timestamp {
	for _, id := range w.active {
		if id != w.self {
			tau = min(tau, w.known[id])
		}
	}
	return tau
}

// covered reports whether all members hold the dated imports of a hold, by what
// they say.
func (w *watermark) covered(h Hold) bool {
	return !slices.ContainsFunc(w.active, func(id ID) bool { return id != w.self && !w.coveredBy(id, h) })
}

// coveredBy is covered for one member.
func (w *watermark) coveredBy(id ID, h Hold) bool {
	s, at := w.under(id), slices.Index(w.active, w.self)
	return s != nil && at >= 0 && s.Vector[at] >= h.At
}

// release drops the holds that all members have covered.
func (w *watermark) release() { w.Holds = slices.DeleteFunc(w.Holds, w.covered) }

// others is the least promise of the other active members.
func (w *watermark) others() dbadapter.Timestamp {
	least := ^dbadapter.Timestamp(0)
	for _, id := range w.active {
		if id != w.self {
			least = min(least, w.promised(id))
		}
	}
	return least
}

// mark is the watermark: what is not later, all members hold, or dominate.
func (w *watermark) mark(tau dbadapter.Timestamp) dbadapter.Timestamp {
	return min(w.promise(tau), w.others())
}

// proven reports whether a peer's floor is one that it can have: all members have
// vouched for what is not later. A node that recovers relies on those that do not;
// two restored copies would wait for one another for ever.
func (w *watermark) proven(floor, tau dbadapter.Timestamp) bool {
	if !w.Recovering {
		return floor <= w.mark(tau)
	}
	for _, id := range w.active {
		if s := w.under(id); id != w.self && (s == nil || !s.Recovering) && floor > w.promised(id) {
			return false
		}
	}
	return true
}

// synced is a sync of the whole namespace, both ways and under one list, that has
// run to its end.
type synced struct {
	peer        ID
	writes      bool // the peer may write
	era         uint64
	incarnation uint64              // as greeted
	tau         dbadapter.Timestamp // as greeted; 0: nothing that this node can believe
	floor       dbadapter.Timestamp // as greeted
	// clean: no tombstone, nothing that expires and nothing from the future was
	// declined, but for the floor.
	clean bool
	// verified: the sets were proved equal.
	verified bool
}

// note takes what a sync has shown. It reports whether what is durable has changed.
func (w *watermark) note(s *synced, tau dbadapter.Timestamp) (changed bool) {
	if s.era != w.era {
		return false
	}
	if s.clean && s.tau != 0 {
		w.known[s.peer] = max(w.known[s.peer], s.tau)
		// What the peer knew when it made its pledge, its snapshot holds. A
		// process that runs since may have been started from a copy that does not.
		if k := w.under(s.peer); k != nil && s.writes && k.at.Clock <= s.tau && k.at.Incarnation == s.incarnation {
			for i, id := range w.active {
				if id != w.self {
					w.known[id] = max(w.known[id], k.Vector[i])
				}
			}
		}
	}
	if !s.verified {
		return false
	}
	if w.Recovering {
		w.met[s.peer] = true
		whole := s.writes && s.floor != recovers
		if !whole && (w.sharded || !w.metAll()) {
			return false
		}
		if whole && s.floor > w.Floor && w.proven(s.floor, tau) {
			w.Floor, changed = s.floor, true // this node holds what the peer holds: it keeps out what the peer does
		}
		changed = changed || !w.sharded
		w.Recovering = w.sharded
		return changed
	}
	if s.floor > w.Floor && s.floor != recovers && w.counts() && w.proven(s.floor, tau) {
		w.Floor = s.floor
		return true
	}
	return false
}

// recoverAlone ends the recovery of a node that has no other member to catch up with.
func (w *watermark) recoverAlone() (changed bool) {
	changed = !w.sharded && w.Recovering && (w.alone || w.counts() && len(w.active) == 1)
	w.Recovering = w.Recovering && !changed
	return changed
}

// metAll reports whether this node was found equal with each other member.
func (w *watermark) metAll() bool {
	for _, id := range w.active {
		if id != w.self && !w.met[id] {
			return false
		}
	}
	return true
}
