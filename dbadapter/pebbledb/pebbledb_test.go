package pebbledb_test

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
	"github.com/syncd-io/syncd/dbadapter/pebbledb"
)

var harness = disktest.Harness{
	Open: func(dir string, o disktest.Options) (dbadapter.Backuper, error) {
		return pebbledb.Open(dir, pebbledb.Options{NoSync: o.NoSync, LogLimit: o.LogLimit})
	},
	Format: pebbledb.Format,
	Files:  []string{"*.sst", "MANIFEST-*", "OPTIONS-*", "*.log", "marker.*"},
}

func TestMain(m *testing.M) { disktest.TestMain(m, harness) }

func TestStore(t *testing.T)         { disktest.TestStore(t, harness) }
func TestDamageClosed(t *testing.T)  { disktest.TestDamageClosed(t, harness) }
func TestDamageCrashed(t *testing.T) { disktest.TestDamageCrashed(t, harness) }
func TestLock(t *testing.T)          { disktest.TestLock(t, harness) }
func TestFormat(t *testing.T)        { disktest.TestFormat(t, harness) }
