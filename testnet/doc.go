// Package testnet runs many nodes in one process under simulated time, does to
// them what a plan says, and judges what comes out.
//
//	result, err := testnet.Run(ctx, testnet.Config{Nodes: 5, Seed: 7})
//	if err == nil && !result.Passed() {
//		fmt.Println(result.Violations, result.Unmet)
//	}
//
// A run is a function of its plan and seed. Time is virtual, everything that
// happens is an event of one queue, and everything random is drawn from the
// seed: the same run twice gives the same TraceHash, on every machine. A run
// that fails is replayed by its seed alone. Its Tape is the run as a scenario,
// Shrink looks for a smaller one that fails alike, and SVG draws it. The command
// syncd testnet run does all of this.
//
// What runs is the node itself: all that it decides (internal/node), package
// reconcile's sessions and live sketches, package dbadapter's versions. Nodes
// become members by invitations. What is modelled are disk, links and machine
// clocks, so that they can fail: writes
// that were not synced are lost or torn, bits flip, disks fill up and are
// replaced by old copies; links delay, lose, double and reorder frames or go
// dead in one direction; clocks jump and stand still; processes freeze, die at
// any step of a sync or any write to the disk, and speak an older version of
// the protocol.
//
// After the last event everything is healed, and the nodes have the plan's
// settling time to become equal. Then every pair syncs once more, which must move
// nothing; the power fails at all of them, and they start again; and the checker
// looks at all that was asked, answered and seen (its rules are in [Violation]).
//
// What is not simulated: sockets, and the stores on real disks. For those there
// is testnet/testnettest, whose runs are real and therefore not replayable.
package testnet
