// Package testnettest runs your application's sync on real nodes, within a test. Each node has
// a database of its own on disk. All are members of one namespace, connected by libp2p over
// loopback. You take the network apart, stop and kill nodes, set their clocks wrong, and ask
// in the end whether all agree.
//
//	func TestNotes(t *testing.T) {
//		net := testnettest.New(t, 3)
//		a, b := notes.Open(net.Namespace(0)), notes.Open(net.Namespace(1))
//		net.Partition([]int{0}, []int{1, 2}) // they cannot talk
//		a.Add("milk")                        // both go on alone
//		b.Add("bread")
//		net.Heal()
//		net.AssertConverged(time.Minute)
//		net.AssertSame("the list", func(i int) string { return notes.Open(net.Namespace(i)).List() })
//	}
//
// The test's cleanup ends all nodes, and fails the test if it finds leaks:
// goroutines, open files, connections. A failing test shows the logs of the nodes.
// A net of five nodes takes about a second; it does not sleep, and tests may run
// in parallel.
//
// # What is checked
//
// The net records all commits of all nodes; your code needs no wrappers.
// AssertConverged syncs the nodes until nothing moves, and then checks these promises:
//
//   - Nodes which reach each other hold the same records. Their digests and sketches agree
//     with these.
//   - Each acknowledged write is there, or a later one of its key.
//   - No deleted record came back, and no record appeared without a write.
//   - No version went back or has two contents.
//   - Once all are equal, a sync moves nothing.
//
// All are promises of package peer. Equal records are not yet correct ones: of
// two writes to one key the later wins, and the other is gone. Your own assertions,
// after AssertConverged, must say whether that is right for your application.
// AssertSame compares what the application makes of the records on each node.
// Package testnet/example/tally is a small application with such a test and with
// the fault that the test finds.
//
// # Limits
//
// The nodes listen over TCP alone, not over QUIC, whose connections could not be broken or
// held; the tests of package peer sync over QUIC. They live in one process. Kill breaks
// their connections and leaves their stores as a dead process would, but a commit under
// way completes, and unsynced writes are not lost. A partition refuses and resets
// connections; Cut holds back the bytes of one direction. Links have no delay and no loss.
//
// Real sockets have their own timing: no seed replays a test that fails one time
// in a hundred. The simulator in package testnet replays its runs; it drives the
// same decisions and sessions, and not your code.
//
// Each node takes some 70 MiB of address space for its tables, and opening it
// some 50 ms; the option Memory makes both small.
package testnettest
