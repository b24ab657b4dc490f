// Package nodes runs real nodes of package peer in one process: each with a
// store of its own on disk, all connected by libp2p over TCP on loopback, all
// members of one namespace.
//
//	net, err := nodes.Open(ctx, nodes.Config{Nodes: 3, Dir: dir})
//	_, err = net.Namespace(0).Put(ctx, key, value)
//	err = net.Partition(ctx, []int{0, 1}, []int{2})
//	…
//	net.Heal()
//	violations := net.Converge(ctx)
//	err = net.Close(ctx)
//
// What is real: the nodes, their stores and files, sockets, handshakes and
// streams. What is not: all TCP connections are dialled through this package,
// which breaks, refuses or holds them up; the wall clocks, which run with the
// machine's but can be set apart; and Kill, which ends a node within a process
// that lives on (see there).
//
// Every commit of every node goes through a recorder, whoever asked for it.
// Converge hands what was recorded, and what all nodes hold in the end, to
// package check. Close looks for what was left behind.
//
// Runs are not replayable: the scheduler and the sockets have their own
// timing. For that there is the simulator, which runs the same sessions.
package nodes
