// Package watermark is what a node may collect. A deleted record leaves a tombstone, so
// that it stays deleted. The tombstone, and a record that has expired, may go once all
// members hold it, or something later of its key.
//
//	w := watermark.New(self, false, state)             // with what is durable
//	w.SetMembers(members, reading)
//	w.Receive(member, pledge, version)                 // from its record in the control namespace
//	w.Synced(&sync, tau)                               // what a sync has shown
//	if w.PledgeDue(tau, waiting.Collectable(tau)) { pledge := w.Pledge(tau, …) }
//	mark := w.At(tau)                                  // collect what is not later
//	w.RaiseFloor(mark)                                 // before the first record goes
//
// Each node greets a sync with tau, a reading of its clock: each record that it has
// written with a version up to that is in its snapshot, and it makes no earlier one
// any more. After the sync the other side holds all of them. From the readings of all
// members follows a node's promise: up to then it holds what any member has written,
// or will write. A pledge is that promise as a record, with the readings; it is how a
// member acknowledges. The watermark is the least promise of all members.
//
// The floor is up to when this node has collected. A record up to it whose key is free
// is not let in: it may be one that was deleted. A peer with a lower floor that holds
// such a record collects it, too, or sets it aside for a person.
//
// A node recovers while it may lack what it held once. It is a copy from before, has
// lost records, or the members went on without it. It promises nothing, keeps nothing
// out and collects nothing until it was found equal with a member that lacks nothing.
//
// [Watermark] decides, and [State] is the part of it that is durable. [Waiting] knows
// what waits to be collected and when to look for it. [Collection] tells a person how
// far that is. Nothing here has a store or a clock, or starts a goroutine.
// docs/decisions/0020-watermark.md has the histories that the rules answer.
//
// A member that says nothing holds the collection back, until an admin declares that it
// has lapsed. A member that may write and lies can make others collect too early.
package watermark
