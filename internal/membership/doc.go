// Package membership is who the members of a namespace are, as one of them knows it.
//
// A [Group] has the list of members. It is a function of signed statements (package roster)
// which lie in the namespace's control namespace, and reach the other members with its syncs.
// A statement is durable before it counts. There are no votes: who may state what follows
// from the statements before it.
//
//	list.go        the statements: into the control namespace, then into the list
//	statements.go  what this node states: a role, a removal, a lapse, an expiry
//	members.go     one reading of the list, and what this node hears of its own removal
//	control.go     what a member says of itself, such as its addresses; the admission of both
//	invite.go      tickets that this node has issued, and the use of one
//	ticket.go      the text of a ticket
//	join.go        the two messages by which a node joins with a ticket
//	group.go       the group, its lock, and its [Record]: what this node alone knows
//
// One lock serialises all changes of the list, of the record and of the control namespace. The
// rest of the node sees each change by the [Observer], under that lock. What has to be decided
// and written under one list runs in [Group.Hold]: a pledge, which counts under the list that it
// names, or the next layout. A node that holds other locks, too, takes this one before those that
// an Observer takes.
//
// The package opens no file and no connection: [Control] is the control namespace's store, and
// Config.Save makes the record durable.
package membership
