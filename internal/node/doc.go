// Package node is what a node decides: all of it, once. Package peer drives it over
// libp2p, files and the machine's clock. The simulator (testnet) drives the same
// code over a simulated network, disk and clock.
//
//	the node           node.go, id.go, limits.go, errors.go
//	a namespace        namespace.go             its members, clock and state, and its sets of records
//	                   set.go                   a set of records, with what is decided about it alone
//	                   shards.go                what a node keeps of each of several
//	                   holders.go               which members hold which shard; which of them a set is synced with
//	                   coming.go, tenure.go     sets that come and go; when a shard may be dropped
//	                   replicas.go              how the shards stand
//	what is synced     part.go                  the records of a set, or the control namespace
//	rights             group.go                 the members (package membership), and what follows their changes
//	                   layout.go                where the shards are: tables, and when this node states the next layout
//	                   renounce.go              what becomes of this node's writes when its right to write ends
//	this node's own    state.go
//	what comes in      admission.go             the one admission of records
//	                   examination.go           what is asked of each of them, and of all their signatures
//	what goes out      write.go, importing.go, held.go, signature.go, commitlock.go, pace.go
//	what reads as there expiry.go
//	after a wrong clock restamp.go
//	deletes stay deleted collect.go            the collector of a set (internal/gc); adoption
//	                   floor.go                 what a sync shows it, and what then leaves
//	                   unpledged.go             members that make no pledges
//	what is due        tend.go
//	what is kept       audit.go                 is computed anew now and then
//	the next start     summary.go               what is kept of the live sketch, when, and how it is taken up
//	what takes no part pause.go
//	a sync             partners.go              what internal/syncing asks: which parts are shared with whom
//	                   conversation.go          a sync's two beginnings and its end
//	                   filling.go               how far an empty node has come
//	what is remembered refusals.go              what this node refused, and what its peers did (internal/refusals)
//	                   kept.go                  what left the set, and how it comes back
//	what is pushed     arrival.go               pushes of others
//	questions          ask.go                   what members ask one another
//	                   view.go                  the keys and rights of a shard that is not held here
//	                   askers.go                which wait for a commit
//	where a key is     home.go                  its shard, and what this node holds of it
//	                   bodies.go                which keys and values are users'
//	after damage       lost.go                  what is missing since files were made anew
//	                   otherstore.go            records that were restored beside a newer state
//	for a backup       still.go
//
// It is a set of deciders, not an event loop: a driver asks, and does what it is
// told. Nothing here starts a goroutine, opens a file or a socket, reads a clock or
// draws a random number. [Config] hands in the time, the randomness, the signer and
// a way to run n things at once. [Opening] hands in the store and what makes a
// state durable. Locks are here, because deciders are shared by what a driver runs
// at once.
//
// # The way of a record
//
// From Put on one node to Get on another, in the files that it passes:
//
//	peer/write.go                    Put makes a draft, and carries it to the store until it is there
//	internal/node/write.go           Attempt.Writes: a version of the clock (internal/hlc), the hashes, the signature
//	dbadapter/hashed.go              Hash validates the record and derives index and digest
//	dbadapter/internal/kvstore       namespace.go: Apply queues the write (queue.go); committer.go syncs a group of them
//	dbadapter/internal/commit        group.go: the greater version wins; what a bucket's pair becomes
//	reconcile/replica/live.go        Observe brings the live sketch up to date with the commit
//
//	peer/background.go, peer/sync.go the schedule, or a caller, begins a sync; peer/serve.go answers it
//	internal/node/conversation.go    MayCall, Call, Initiate here; Answer, Respond there
//	internal/netio/stream            carries the frames of both sessions (reconcile/wire) over a libp2p stream
//	reconcile/initiator.go           and responder.go: handshake, sketch, subtract, peel: which indices differ
//	reconcile/sender.go              reads the record by its index, and packs it into a frame
//	reconcile/receiver.go            checks that it was asked for, and validates and hashes it, the one time
//	reconcile/apply.go               passes a batch to the admission
//	internal/node/examination.go     time, writer, signature
//	internal/node/admission.go       Admit; then the other node's store, as above
//	reconcile/verify.go              proves that both sets are equal
//
//	peer/read.go                     Get reads a snapshot of the store; internal/node/expiry.go says whether the record is there still
package node
