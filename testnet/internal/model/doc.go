// Package model is a node as the simulator runs it. What matters for the
// promises is the real thing: sessions, the live sketch, versions, the clock
// and the decisions of the store are the packages that a node on a network
// runs. What is modelled, because the real one needs goroutines, sockets and
// files, is what stands around them:
//
//	store      a log of checksummed commits on a simulated disk, replayed into
//	           dbadapter/memdb at each start, for badgerdb
//	sessions   frames over simulated streams with virtual deadlines, and who
//	           yields to whom, for package peer's conversation and sessions
//	door       limits, clocks and signatures, for peer's door, without roles
//	write      puts, deletions and batches that share a sync, for peer's write
//	background syncs with every other node in lanes that rest after failures,
//	           for peer's background
//
// A change in one of those of peer's belongs here as well.
package model
