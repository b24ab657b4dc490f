package quorum

import (
	"math"
	"slices"
	"time"
)

// LongestDeadline is the longest time for which a record that is being written may reach its
// hosts. A command that runs for longer makes its record anew. (11)
const LongestDeadline = time.Minute

// Term is the time for which what a member was found equal in goes on to count.
type Term uint64

// NoTerm is a term in which no sync counts.
const NoTerm Term = 0

// Host is what a member concludes from its syncs of one shard. That is whether it is whole,
// whether it is ready, and whether it may drop the shard's records. It is for one goroutine at
// a time. Whole is durable, and its caller keeps it; what else there is begins anew with each
// start.
//
// Two hosts are equal when each has what the other one held when their sync began. Only a sync
// that began on both sides under the row that both still have counts. (8)
type Host struct {
	Self ID
	// Whole: the member has what a majority of the old hosts had. It ends when the member loses
	// records, is restored from a copy, or lapses. Founders are whole: the old hosts of a row
	// without a parent. (4)
	Whole bool
	// LostUntil is up to when no sync that begins counts. A record that was confirmed here
	// may be lost here and be under way to the others still. (11)
	LostUntil time.Duration

	row   *Row
	term  Term
	equal map[ID]met // the members that it was found equal with
}

// met is what a peer was when the member was found equal with it.
type met struct {
	whole bool
	floor uint64
}

// Row is the row by which the member goes; nil: it knows none.
func (h *Host) Row() *Row { return h.row }

// Go tells by which row the member goes from now on. What was found under another row counts
// no longer. (8)
func (h *Host) Go(row *Row) {
	if h.row == nil || row == nil || h.row.Name() != row.Name() {
		h.row = row
		h.forget()
	}
}

func (h *Host) forget() { h.term++; h.equal = map[ID]met{} }

// Lose ends that the member is whole. (4)
func (h *Host) Lose() {
	h.Whole = false
	h.forget()
}

// Entered is to be called when a record has entered the shard here by a sync that began in
// another term. A push that was sent under another row counts, too. A member in neither set
// may drop only what its hosts had; so it begins anew. (15)
func (h *Host) Entered(began Term) {
	if began != h.term && (h.row == nil || !h.row.IsHost(h.Self)) {
		h.forget()
	}
}

// Term is the one that a sync belongs to which begins now, by a steady clock. (8, 11)
func (h *Host) Term(now time.Duration) Term {
	if h.term == NoTerm {
		h.forget()
	}
	if now < h.LostUntil {
		return NoTerm
	}
	return h.term
}

// Equal notes that the member was found equal with a peer. The sync began in a term, under the
// row that the peer had then and has still. whole: the peer said that it is; floor: up to when
// it has collected deletions. (8)
func (h *Host) Equal(peer ID, whole bool, floor uint64, began Term) {
	if began != NoTerm && began == h.term {
		h.equal[peer] = met{whole, floor}
	}
}

// enough: the member is equal with a majority of the old hosts, whole ones, itself counted if
// it is one.
func (h *Host) enough() bool {
	return most(h.row.Old, func(id ID) bool { return h.equal[id].whole || id == h.Self && h.Whole })
}

// BecomesWhole reports whether the member is whole from now on. (9) Up to floor it keeps out
// what it does not hold. For each of those by which it is whole has collected that, or holds
// what deletes it.
func (h *Host) BecomesWhole() (whole bool, floor uint64) {
	if h.row == nil || h.Whole || !h.row.IsHost(h.Self) || !h.enough() {
		return false, 0
	}
	floor = math.MaxUint64
	for _, id := range h.row.Old {
		if peer := h.equal[id]; peer.whole {
			floor = min(floor, peer.floor)
		}
	}
	return true, floor
}

// Ready reports whether the member, a new host, is to sign that it is ready for the row. Old
// hosts that stay are no exception: they, too, have to be found equal under it. (10)
func (h *Host) Ready() bool {
	return h.row != nil && h.Whole && h.row.IsNew(h.Self) && h.enough()
}

// MayDrop reports whether the member may drop the shard's records. It may if it is in
// neither set, and a majority of the new hosts has what it holds. (15)
func (h *Host) MayDrop() bool {
	return h.row != nil && !h.row.IsHost(h.Self) && most(h.row.New, h.met)
}

func (h *Host) met(id ID) bool {
	_, met := h.equal[id]
	return met
}

// Missing are the hosts with which the member was not found equal yet.
func (h *Host) Missing() []ID {
	if h.row == nil {
		return nil
	}
	return slices.DeleteFunc(h.row.Hosts(), func(id ID) bool { return id == h.Self || h.met(id) })
}
