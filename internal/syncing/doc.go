// Package syncing decides when a node syncs with whom, in which conversations, and at what
// cost. It sees no record and no store: parts are known by their ids, peers by theirs, and
// contents by digests.
//
// A sync is one or more conversations of package reconcile with one peer. A [Plan] says which:
//
//	plan := part.Plan(remote, syncing.Ask{})         // of internal/node, which fills a PlanConfig
//	report, err := plan.Run(ctx, driver, progress)   // driver dials, converses and sleeps
//
// Run is the one loop of a sync. Package peer drives it over libp2p, and the simulator over a
// simulated network. [Schedule] has the other loop, that of background syncs: a driver begins a
// Round after each Pause.
//
//	ask.go         what an initiator wants of a sync; the keys that a dry run lists
//	plan.go        the conversations of a sync: the list of members first where it differs, large syncs in parts
//	run.go         the loop that holds them, and tries a busy peer again
//	all.go         a sync of several parts with one peer
//	report.go      the report of a sync of several conversations, and what it has proved
//	schedule.go    background syncs: a lane for each peer, rests after failures
//	backoff.go     after which pause a busy peer is tried again
//	equal.go       which peers were proved to hold the same, and need no sync yet
//	openings.go    how many cells a Hello to a peer carries
//	bulk.go        from which peer a set is given many records: one at a time
//	history.go     the last syncs that ended; the conversations of a peer's large sync are one
//	sessions.go    places for the syncs of peers; which of two callers yields
//	questions.go   the budget of a peer's questions
//	limits.go      the bounds of all that
//
// Each type owns its state and its lock. A lock is held while a func of a config is called
// (PlanConfig), and never while a driver is. Nothing here starts a goroutine,
// reads a clock or draws a random number: drivers and configs hand them in.
//
// Not promised: fairness among peers beyond that of [BulkTurn]. A turn bounds what one peer can
// hold up to half a minute, not how many of them there are.
package syncing
