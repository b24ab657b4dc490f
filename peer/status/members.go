package status

import "time"

// FormerMember is a node that was a member and has lost its role.
type FormerMember struct {
	ID ID        `json:"id"`
	By ID        `json:"by" doc:"the admin that ended the membership, or that wrote down that it had expired; the node itself, if it left"`
	At time.Time `json:"at" doc:"by the clock of that admin"`
}

// VoidStatement is a change of the members that does not count. Its author lost the
// right to it by a change that was made at the same time, elsewhere.
type VoidStatement struct {
	Hash    string    `json:"hash"`
	Kind    string    `json:"kind" doc:"what it would have done: grant, remove, expire or lapse"`
	By      ID        `json:"by" doc:"its author, which lost the right to it by a change made at the same time elsewhere"`
	At      time.Time `json:"at"`
	Subject ID        `json:"subject" doc:"the node that it is about"`
	Role    string    `json:"role,omitempty" doc:"of a grant"`
}

// Removal tells how the membership of a node ended.
type Removal struct {
	By      ID        `json:"by" doc:"the admin that ended it, or that had given the role which has expired"`
	At      time.Time `json:"at" doc:"by the clock of that admin"`
	Expired bool      `json:"expired,omitempty" doc:"the role was given for a time"`
}

// Twin is a member whose identity two nodes run with: a copy of a data folder was
// started next to the original. Records of the one can take the place of the other's. So
// this node syncs with neither until one has been silent for peer.TwinLife.
type Twin struct {
	ID    ID          `json:"id"`
	Heard []time.Time `json:"heard" doc:"when each of the two was heard last"`
}

// Twinned is what a peer has reported to this node of a twin.
type Twinned struct {
	By ID        `json:"by"`
	At time.Time `json:"at"`
}

// Invite is a ticket that this node has issued.
type Invite struct {
	ID      string    `json:"id" doc:"names the ticket, and does not let anyone join"`
	Role    string    `json:"role" enum:"read,write,admin"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses" doc:"how many nodes can join by it"`
	UsedBy  []ID      `json:"used_by" doc:"the nodes that have joined by it"`
}

// Collection is how far the collection of what was deleted, or has expired, is. A
// deleted record leaves a tombstone, so that it stays deleted. The tombstone goes once
// all members are past it, whatever arrives later.
type Collection struct {
	// Waiting is an upper bound. A tombstone that was overwritten counts until the records are read
	// next. Counted: they were read since the namespace was opened, or before its last orderly close.
	Waiting    int64     `json:"waiting" doc:"tombstones and records that expire, at most"`
	Counted    bool      `json:"counted" doc:"they were counted since the node was started"`
	Oldest     time.Time `json:"oldest,omitzero" doc:"from when on the first of them may go"`
	Mark       time.Time `json:"mark,omitzero" doc:"up to when all members hold what was written; absent if it is not known yet"`
	Floor      time.Time `json:"floor,omitzero" doc:"up to when this node has collected: what is not later and not held is not let in"`
	Recovering bool      `json:"recovering,omitempty" doc:"the node may lack what it held once, and collects nothing until it was found equal with another member"`
	Holding    []Holding `json:"holding" doc:"the members that hold back what waits"`
}

// Holding is a member that holds the collection back.
type Holding struct {
	Member ID        `json:"member"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero" doc:"up to when its records are known; absent: not since the list of members changed"`
	Synced time.Time `json:"heard,omitzero" doc:"when this node last synced with it; absent: not since it was started"`
	Silent bool      `json:"silent,omitempty" doc:"it has not been heard for more than 24 hours; an admin can let it lapse"`
}

// Swept is what a collection did.
type Swept struct {
	Collected int64 `json:"collected" doc:"tombstones and expired records that are gone"`
	Adopted   int64 `json:"adopted" doc:"records of a writer that lost its right, written again by this node"`
	SetAside  int64 `json:"set_aside" doc:"such records that this node may not write"`
}

// Plus adds what another collection did.
func (s Swept) Plus(of Swept) Swept {
	return Swept{s.Collected + of.Collected, s.Adopted + of.Adopted, s.SetAside + of.SetAside}
}

// Proof is a sync of everything that has proved the records of two members equal.
type Proof struct {
	With ID        `json:"with"`
	At   time.Time `json:"at" doc:"by the clock of the node that tells of it"`
	// Differences of a sync that went in parts is how many the last one of all records still found.
	Differences int64 `json:"differences" doc:"that the sync had found"`
}

// Waited is what a wait has found.
type Waited struct {
	Held    []ID          `json:"held" doc:"ids of the members that hold it, durably"`
	Missing []Unconfirmed `json:"missing" doc:"the others that were asked"`
}

// Unconfirmed is a member that was not heard to hold what a wait waited for.
type Unconfirmed struct {
	Peer ID `json:"peer"`
	// Why says what it answered last, or why it did not.
	Why string `json:"why"`
}
