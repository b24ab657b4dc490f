// Package roster is the member list of a namespace: a function of a set of signed
// statements. So nodes with the same statements have the same list, whatever the order
// in which these arrived, and though their authors lie.
//
//	set := roster.New(roster.Config{Namespace: id, Creator: creator, Verify: verify})
//	set.Load(kept)                                // in any order
//	status, err := set.Add(value)                 // from a peer
//	list := set.List()                            // never changes
//	if list.Has(peer, roster.RoleRead) && list.MayWrite(writer, version.Clock) { … }
//	value, err := roster.Make(set, roster.Statement{Kind: roster.Remove, Subject: peer}, self, now, sign)
//
// docs/MEMBERS.md has the rules, for an implementation from nothing. In short:
//
// A statement names the heads that its author had seen, and is examined once, by
// what these reach: its author must be an admin there. So the verdict is the same
// on each node. Two statements are apart (concurrent) if neither reaches the other.
//
// A grant of the role admin gives its subject a seat. Above a seat are the seats of
// the grant's author, and what is above all of these. The founder's seat, the root,
// is above each other one and below no seat. A seat is taken from its holder by the holder
// and by seats above it, only. A new grant gives a new seat, and a member that was
// removed and comes back is not above what it was above before.
//
// A statement stands if a seat of its author is live for it. The seat is if its own
// grant stands, and no statement that is apart from this one takes it. Whether one does
// rests on live seats above. These are in the seat's past, so that the definition ends,
// and no circle of removals can void itself. (By names, not seats, it can: A made B, B
// made A anew, and each removes the other.)
//
// A set has bounds, which what does not stand does not count to: limits.go. An admin
// can sign more than they let in, and give each node others. The lists are one again
// once that admin is removed (room.go).
//
// A namespace that is cut into shards has layouts, which say where they are: statements
// of admins that stand as others do. Of those that stand the one of the greatest epoch
// counts, and an epoch follows from what its author had seen. The set takes them without
// their tables, which are the caller's.
//
// What is not promised: At is a claim. An admin can date a statement as it likes, and
// so choose from when on a writer's versions do not count. Bounds against the clock are
// for the caller, as for versions. The founder alone can found twice, and so exchange
// the policy. A set only grows.
//
// The package is pure: no clock, no socket, no goroutine; keys are handed in.
package roster
