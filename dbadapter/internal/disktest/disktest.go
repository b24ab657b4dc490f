// Package disktest tests what only a store on disk promises: that it survives power
// cuts, names damage to its files, and is open once. A package that makes a store of
// an engine calls each function from a test of the same name, and Examine from its
// TestMain:
//
//	func TestPowerCut(t *testing.T) { disktest.TestPowerCut(t, harness) }
package disktest

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Harness is the store under test.
type Harness struct {
	// Open opens the store in a folder.
	Open func(dir string, o Options) (dbadapter.Backuper, error)
	// Format is the number of the disk format.
	Format int
	// Files are patterns of the files that must be there after a clean close, and are
	// cut and removed one by one.
	Files []string
	// Shorten, if not nil, cuts what is of no meaning off the files of a store that was
	// not closed, so that copies are made fast.
	Shorten func(t *testing.T, dir string)
}

// Options are the settings that the tests choose.
type Options struct {
	// NoSync leaves it to the operating system when to write to the disk.
	NoSync bool
	// Trust skips reading the files through when the store is opened, where the
	// engine does so.
	Trust bool
}

// hashed is a record that is fit to be stored.
func hashed(h dbadapter.Hasher, r dbadapter.Record) dbadapter.Hashed {
	out, err := dbadapter.Hash(h, r)
	if err != nil {
		panic(err)
	}
	return out
}
