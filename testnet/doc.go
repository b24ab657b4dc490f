// Package testnet runs many nodes in one process under simulated time, applies
// the events of a plan to them, and judges the outcome.
//
//	result, err := testnet.Run(ctx, testnet.Config{Nodes: 5, Seed: 7})
//	if err == nil && !result.Passed() {
//		fmt.Println(result.Violations, result.Unmet)
//	}
//
// A run is a function of its plan and seed. Time is virtual, all events stand in one queue,
// and every random draw depends on the seed. So the same run twice gives the same TraceHash,
// on every machine, and the seed alone replays a failing run. Its Tape is the run as a
// scenario, Shrink searches for a smaller run with the same failure, and SVG draws it. The
// command syncd-testnet does all of this.
//
// # What is simulated
//
// The node is the real one: its decisions (internal/node), package reconcile's
// sessions and live sketches, package dbadapter's versions. Nodes become members
// by invitations. Disk, links and machine clocks are modelled, so that they can fail:
//
//   - Disks lose or tear unsynced writes, flip bits, fill up, and are replaced by old copies.
//   - Links delay, lose, double and reorder frames, or lose all of one direction.
//   - Clocks jump and stand still.
//   - Processes freeze, and die at any step of a sync or any write to the disk. Some speak an
//     older version of the protocol.
//
// After the last event the simulator heals everything, and the nodes have the plan's settling
// time to become equal. Then every pair syncs once more, which must move nothing. The power
// fails at all nodes, and they start again. Last, the checker judges the requests, the answers
// and the records (its rules are in [Violation]).
//
// Sockets and the stores on real disks are not simulated. Package
// testnet/testnettest tests those; its runs are real and therefore not replayable.
package testnet
