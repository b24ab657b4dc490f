// Package damage is what is wrong with a node: the damage that was met in its store, and
// the health that follows from that and from the machine.
//
// Watched wraps the records of each namespace. Each error of theirs that speaks of damage
// (dbadapter.ErrCorrupt) is a finding in the Book: of its namespace, or of the node where no
// namespace can be named. The first finding begins a state that lasts over restarts.
// It ends when a verification that began later has found the namespace whole, files included.
//
// Read is that verification: it reads all that is kept of the records, and checks it. Audit
// compares what a set keeps up to date for syncs with a scan of its records.
//
// Health looks, every few seconds, at what keeps the node from its work. It asks the store
// whether it works, opens a file, and reads the book. Each trouble is logged when it
// begins and when it ends; status, metrics and other members read the last look.
//
// The package knows the node by what it is given: a log, a clock, and what runs a function
// in the background.
package damage
