// Package testnettest runs your application's sync on real nodes, within a
// test: each node with a database of its own on disk, connected by libp2p over
// loopback, all members of one namespace. You take the network apart, stop and
// kill nodes, set their clocks wrong, and ask in the end whether all agree.
//
//	func TestNotes(t *testing.T) {
//		net := testnettest.New(t, 3)
//		a, b := notes.Open(net.Namespace(0)), notes.Open(net.Namespace(1))
//		net.Partition([]int{0}, []int{1, 2}) // they cannot talk
//		a.Add("milk")                        // both go on alone
//		b.Add("bread")
//		net.Heal()
//		net.AssertConverged(10 * time.Second)
//		net.AssertSame("the list", func(i int) string { return notes.Open(net.Namespace(i)).List() })
//	}
//
// New ends everything with the test, and fails the test if anything is left:
// goroutines, open files, connections. What the nodes logged is shown only if
// the test fails. A net of five nodes takes about a second; nothing sleeps, and
// tests may run in parallel.
//
// # What is checked
//
// All that nodes commit is recorded, whoever asked for it; your code needs no
// wrappers. AssertConverged syncs the nodes until nothing moves, and then
// checks: nodes that reach each other hold the same records, and so do their
// digests and sketches; each acknowledged write is there, or a later one of its
// key is; nothing deleted came back, nothing appeared that nobody wrote, no
// version went back or stands for two contents; a sync that calls itself
// verified has made both sides equal; the heap of the process is within a bound.
//
// These are promises of package peer. That all nodes hold the same records does
// not mean that they are right: of two writes to one key the later wins, and the
// other is gone. Whether your application can bear that, your own assertions must
// say, after AssertConverged. AssertSame compares what the application makes of the
// records on each node. Package tally, beside this one, is a small application
// with such a test and with the fault that the test finds.
//
// # Limits
//
// The nodes live in one process. Kill breaks their connections and leaves their
// stores as a dead process would, but a commit under way is let finish, and
// what was not synced to the disk is not lost. A partition refuses and resets
// connections; Cut holds up what goes one way. There is no delay and no loss.
//
// Real sockets have their own timing: a test that fails one time in a hundred
// is not replayed by a seed. The simulator in package testnet is; it runs the
// same protocol, on model nodes, and not your code.
//
// Each node takes some 70 MiB of address space for its tables, and opening it
// some 50 ms; the option Memory makes both small.
package testnettest
