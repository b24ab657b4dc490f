package badgerdb_test

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
)

func TestPowerCut(t *testing.T)         { disktest.TestPowerCut(t, harness) }
func TestPowerCutUnsynced(t *testing.T) { disktest.TestPowerCutUnsynced(t, harness) }
