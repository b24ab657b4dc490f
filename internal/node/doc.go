// Package node is what a node decides: all of it, once. Package peer drives it
// over libp2p, files and the machine's clock; the simulator (testnet) drives the
// same code over a simulated network, disk and clock.
//
//	who may do what    members.go, state.go     the list of members, durable
//	how members come   invite.go, ticket.go, join.go
//	what comes in      admission.go             the one admission of records
//	what goes out      write.go, importing.go, signature.go
//	after a wrong clock restamp.go
//	with whom          conversation.go          a sync's two beginnings and its end
//	                   sessions.go              places, and which of two callers yields
//	                   schedule.go, retry.go    when to sync, and how long to rest
//	what is remembered rejections.go            what this node refused
//	                   declined.go              what its peers refused
//	                   openings.go              how many cells a sync opens with
//
// It is a set of deciders, not an event loop: a driver asks, and does what it is
// told. Nothing here starts a goroutine, opens a file or a socket, reads a clock
// or draws a random number: [Config] hands in the time, the randomness, the
// signer and a way to run n things at once, [Opening] the store and what makes a
// state durable. Locks are here, because deciders are shared by what a driver
// runs at once.
//
// The way of a record, from Put on one node to Get on another:
//
//	peer.Put        Write → Attempt.Writes (version, signature) → store → Attempt.Judge
//	the store       tells the live sketch (Namespace.Live) of the commit
//	a sync begins   Schedule.Next, Namespace.Call, Initiate; at the other node Answer, Respond
//	package reconcile finds the difference and carries the record over
//	it arrives      Namespace.Admit: rights, signature, clock → store
//	peer.Get        reads the store
package node
