// Package nodes runs real nodes of package peer in one process. Each has a store of its
// own on disk. All are members of one namespace, connected by libp2p over TCP on
// loopback. They do not listen over QUIC, which this package could not break or hold;
// the tests of package peer sync over QUIC.
//
//	net, err := nodes.Open(ctx, nodes.Config{Nodes: 3, Dir: dir})
//	_, err = net.Namespace(0).Put(ctx, key, value)
//	err = net.Partition(ctx, []int{0, 1}, []int{2})
//	…
//	net.Heal()
//	violations := net.Converge(ctx)
//	err = net.Close(ctx)
//
// The nodes, their stores and files, sockets, handshakes and streams are real. This
// package dials all TCP connections, and breaks, refuses or delays them. It sets the
// wall clocks ahead or behind. Kill ends a node within a process that lives on (see
// there).
//
// A recorder sees every commit of every node. Converge hands the recorded commits,
// and all records that the nodes hold in the end, to package check. Close looks
// for leaks.
//
// Runs are not replayable, since the scheduler and the sockets have their own
// timing. The simulator replays runs, and drives the same sessions.
package nodes
