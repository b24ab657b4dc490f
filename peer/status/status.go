// Package status has the words in which a node says how it is.
package status

import "time"

// Lost says that the node's store was damaged and made anew, and what that has cost. What
// members hold comes back by syncs. What only this node had written is lost for good.
type Lost struct {
	// Records is how many records were missing from the new store; -1: that is not known.
	Records int64
	// Shards are those of which records were missing, in a namespace of shards.
	Shards []uint32
	// At is when the store was made anew.
	At time.Time
}
