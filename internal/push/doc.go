// Package push decides what a set of records pushes to other members, and which syncs the
// pushes of others bring about. It sees no network and no store.
//
// A [Pusher] has an outbox. What this node writes goes out as records, a few milliseconds
// after the commit. What is too large, or too much, is only reported: a sync brings it. A
// set that has been quiet sends its digest, unless another member has sent the same one.
// That is the rule of Trickle (RFC 6206) with k = 1.
//
// Each push of a node has a number. So a push that was lost shows as a gap, and a digest
// that differs shows that something is missing. Each leads to a sync with the member that
// knows, a little later. What is equal by then needs no sync.
//
// Pushes go directly to each member of a small namespace, over a line, and over a mesh
// where lines do not reach all. [Pusher.Direct] decides it by the lines there are.
//
// A driver calls [Pusher.Step] when Source.Wake was called, and when the time that Step
// gave is over:
//
//	wait := pusher.Step(audience, network) // sends, and begins syncs
//
// A push is no promise. It may be lost, and syncs at intervals bring what it would have.
package push
