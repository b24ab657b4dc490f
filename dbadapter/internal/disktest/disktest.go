// Package disktest tests what only a store on disk promises: that it survives power
// cuts, names damage to its files, and is open once; TestStore runs the conformance
// suite. Package ondisk calls each function from a test of the same name, over each engine:
//
//	func TestPowerCut(t *testing.T) { overBoth(t, disktest.TestPowerCut) }
package disktest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// Harness is the store under test.
type Harness struct {
	// Open opens the store in a folder.
	Open func(dir string, o Options) (dbadapter.Backuper, error)
	// Files are patterns of the files that must be there after a clean close, and are
	// cut and removed one by one.
	Files []string
	// Shorten, if not nil, cuts what is of no meaning off the files of a store that was
	// not closed. So copies are made fast.
	Shorten func(t *testing.T, dir string)
}

// Options are the settings that the tests choose.
type Options struct {
	// NoSync leaves it to the operating system when to write to the disk.
	NoSync bool
	// LogLimit is how many changes of a namespace the log keeps, at least; 0 means the
	// store's own default.
	LogLimit int
}

// TestMain runs the tests, and fails if a goroutine is left; in a child process of a
// test it does what the child is for. Badger leaves two goroutines where the system refuses a
// file to an opening.
func TestMain(m *testing.M, h Harness) {
	if !examineAsChild(h) {
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
			goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"))
	}
}

// TestStore runs the conformance suite.
func TestStore(t *testing.T, h Harness) {
	type opened struct {
		dir     string
		options Options
	}
	stores := make(map[dbadapter.Store]opened)
	open := func(t testing.TB, o opened) dbadapter.Store {
		s, err := h.Open(o.dir, o.options)
		if err != nil {
			t.Fatal(err)
		}
		stores[s] = o
		return s
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, logLimit int) dbadapter.Store {
			return open(t, opened{t.TempDir(), Options{LogLimit: logLimit}})
		},
		Reopen: func(t testing.TB, s dbadapter.Store) dbadapter.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, stores[s])
		},
	})
}

// hashed is a record that is fit to be stored.
func hashed(h dbadapter.Hasher, r dbadapter.Record) dbadapter.Hashed {
	out, err := dbadapter.Hash(h, r)
	if err != nil {
		panic(err)
	}
	return out
}
