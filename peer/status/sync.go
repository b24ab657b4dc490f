package status

import (
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// Sync is a sync that has ended, as Node.RecentSyncs of package peer lists it. A large sync that goes
// in parts is one. While it runs, the record of the side that was called tells how far it
// is. That side learns of a break between two parts by the end of the connection alone.
type Sync struct {
	// Time is when it ended.
	Time time.Time
	// Incoming: the peer began it.
	Incoming bool
	// DryRun: it found the differences and moved nothing.
	DryRun bool
	Report reconcile.Report
	// Error is empty if it succeeded.
	Error string
}
