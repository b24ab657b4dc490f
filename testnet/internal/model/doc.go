// Package model is a node as the simulator drives it. Package internal/node
// decides, and package reconcile syncs: the code that a node on a network runs.
// The model replaces what needs sockets, files and goroutines there:
//
//	members.go     the namespace's state on a simulated disk, and the join protocol
//	               over simulated streams, for peer's files and join
//	store.go       a log of checksummed commits on the disk (entry.go), replayed into
//	               dbadapter/memdb at each start, for a store on disk
//	conn.go        simulated streams with virtual deadlines, for netio's
//	session.go     syncs of both sides, for peer's sync and serve
//	serve.go
//	routine.go     coroutines, for goroutines
//	ask.go         questions and answers over simulated streams, for peer's ask
//	wait.go        waits as routines, for peer's wait
//	write.go       writes that share a sync of the disk, for the committer of a store on disk
//	background.go  virtual timers for the schedule, for peer's background
//	wall.go        a machine's clock that jumps and stands still
//	damage.go      live sketches and sums of ranges that are kept wrong
//	shortcheck.go  a sum of differences that is taken for one
//	crash.go       processes that die anywhere
//
// Nodes become members by invitations, as they do on a network.
package model
