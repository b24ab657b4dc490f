// Package storetest is the conformance suite of stores. A package that implements
// dbadapter.Store calls Run in a test, and promises nothing besides what Run checks:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: …, Reopen: …})
//	}
//
// The main test, model, compares random operations on the store with the same operations
// on a map (see twin): the order of versions, conditions, batches that fail, removals,
// conflicts. Its hash is so weak that most indices hold several keys. Others try
// what it does not reach: limits, the change log, drops, many goroutines. One tries the
// order of locks, which a store that closes snapshots under the lock of its commits does
// not survive.
package storetest

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Harness makes the stores under test.
type Harness struct {
	// Open returns a new, empty store. Its log keeps at least logLimit changes of each
	// namespace, and at most a few times as many.
	Open func(t testing.TB, logLimit int) dbadapter.Store
	// Reopen closes the store and returns one over the same data.
	Reopen func(t testing.TB, store dbadapter.Store) dbadapter.Store
}

// Run tests one kind of store.
func Run(t *testing.T, h Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"many conflicts", testManyConflicts},
		{"large conflicts", testLargeConflicts},
		{"limits", testLimits},
		{"largest batches", testLargest},
		{"any bytes are a key", testKeys},
		{"caller's slices", testSlices},
		{"a scan under writes", testScanUnderWrites},
		{"as many keys as an index takes", testFull},
		{"id of the change log", testLogID},
		{"change log is trimmed", testTrim},
		{"summary", testSummary},
		{"change log reaches back to the summary", testReach},
		{"namespaces are apart", testApart},
		{"drop", testDrop},
		{"closed", testClosed},
		{"closed while in use", testClosedInUse},
		{"cancelled", testCancelled},
		{"lock order", testLockOrder},
		{"all at once", testCrowd},
		{"a paused scan", testPausedScan},
		{"model", testModel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
}

// Weak is a hasher with only 2^bits indices, so that keys share them.
func Weak(h dbadapter.Hasher, bits int) dbadapter.Hasher { return weak{h, 1<<bits - 1} }

type weak struct {
	dbadapter.Hasher
	mask dbadapter.Index
}

func (w weak) Index(key []byte) dbadapter.Index { return w.Hasher.Index(key)&w.mask + 1 }
