// Package node puts a node together: its namespaces, the sets of records of each, and
// what is decided about a record on its way in and out. Package peer drives it over
// libp2p, files and the machine's clock. The simulator (testnet) drives the same
// code over a simulated network, disk and clock.
//
// What has a state of its own is a package below: who the members are (membership),
// when to sync and in which conversations (syncing), what is pushed (push), what may
// be collected (gc, watermark), what a watch yields (changes), what was refused
// (refusals), clocks and twins (clocks). Questions among members (ask) and shards
// (shards) are above.
//
//	the node         node.go           what is due, in which namespaces
//	                 limits.go         bounds, and errors.go: what callers branch on
//	a namespace      namespace.go      what it is made of, and the order of its locks
//	                 members.go        its members, and what follows their changes
//	                 state.go          what is durable beside the records
//	a set            part.go           the records of a namespace, or of a shard; a control namespace
//	records out      write.go          drafts, versions, expiry, signing
//	                 importing.go      many records, some with dates
//	                 restamp.go        versions of now after a wrong clock
//	records in       admission.go      the one admission: place, time, writer, signatures together, floor
//	                 incoming.go       pushes and routed writes
//	                 refusals.go       what was refused, by this node and by its peers
//	a sync           conversation.go   one side of it: turn, sketch, greeting, apply, verify
//	                 partners.go       which parts are shared with whom
//	                 floor.go          what it shows of deletions, and what then leaves
//	deletions        collect.go        the collector of a set; records of former writers
//	                 renounce.go       this node's own writes, when its right to write ends
//	                 unpledged.go      members that make no pledges
//	shards           shards.go         what a node keeps of each
//	                 routing.go        in which shard a key is, and what is held of it
//	                 lifecycle.go      shards are fetched, and dropped
//	                 tenure.go         when one may be dropped
//	                 layout.go         tables, and when this node states the next one
//	                 holders.go        which members hold which, and how they stand
//	others           questions.go      questions of members, and those that wait for a commit
//	                 kept.go           what lost or left, and how it comes back
//	                 damage.go         what is missing since files were lost or restored
//	                 summary.go        the live sketch at the next start
//	                 audit.go          sums that are computed anew now and then
//
// It is a set of deciders, not an event loop: a driver asks, and does what the
// answer says. Nothing here starts a goroutine, opens a file or a socket, reads a clock or
// draws a random number. [Config] hands in the time, the randomness, the signer and
// a way to run n things at once. [Opening] hands in the store and what makes a
// state durable. Locks are here, because deciders are shared by what a driver runs
// at once.
//
// docs/SOURCE.md follows a write, a received record, a routed read and a statement
// through the files.
package node
