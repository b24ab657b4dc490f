package ondisk_test

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
)

func TestPowerCut(t *testing.T)         { overBoth(t, disktest.TestPowerCut) }
func TestPowerCutUnsynced(t *testing.T) { overBoth(t, disktest.TestPowerCutUnsynced) }
