// Package testnet runs many nodes in one process under simulated time, applies
// the events of a plan to them, and judges the outcome.
//
//	result, err := testnet.Run(ctx, testnet.Config{Nodes: 5, Seed: 7})
//	if err == nil && !result.Passed() {
//		fmt.Println(result.Violations, result.Unmet)
//	}
//
// A run is a function of its plan and seed. Time is virtual, all events stand in
// one queue, and every random draw depends on the seed: the same run twice gives
// the same TraceHash, on every machine. The seed alone replays a failing run. Its
// Tape is the run as a scenario, Shrink searches for a smaller run with the same
// failure, and SVG draws it. The command syncd-testnet does all of this.
//
// The node is the real one: its decisions (internal/node), package reconcile's
// sessions and live sketches, package dbadapter's versions. Nodes become members
// by invitations. Disk, links and machine clocks are modelled, so that they can
// fail: disks lose or tear unsynced writes, flip bits, fill up, and are replaced
// by old copies; links delay, lose, double and reorder frames, or lose all of one
// direction; clocks jump and stand still; processes freeze, die at any step of a
// sync or any write to the disk, and speak an older version of the protocol.
//
// After the last event the simulator heals everything, and the nodes have the
// plan's settling time to become equal. Then every pair syncs once more, which
// must move nothing; the power fails at all nodes, and they start again; and the
// checker judges the requests, the answers and the records (its rules are in
// [Violation]).
//
// Sockets and the stores on real disks are not simulated. Package
// testnet/testnettest tests those; its runs are real and therefore not replayable.
package testnet
