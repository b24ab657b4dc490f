package route

import "github.com/syncd-io/syncd/dbadapter"

// Layout names the layout by which a node said that it is no host: its epoch and its
// table. The zero value: it knew none.
type Layout struct {
	Epoch uint64
	Table [32]byte
}

// Answer is what a node answers to a read.
type Answer struct {
	// Host: it is a host of the shard; otherwise Layout is why not.
	Host   bool
	Layout Layout
	// Holds: it is no host, and holds the shard still, as one of before.
	Holds bool
	// Settled: the host has been found equal with one that held the shard before it.
	// Current, only then: lately with each other one that may hold the shard, too.
	Settled, Current bool
	// OtherList: the host's list of members is not the one by which the asker has chosen the candidates, so that
	// these may lack a holder that the host knows, or the host may not know of one. It is sure of nothing, then.
	OtherList bool
	// Record is what it holds under the key, a tombstone too; nil: nothing.
	Record *dbadapter.Record
	// Floor is up to when it has collected deletions.
	Floor dbadapter.Timestamp
}

// current reports whether what the host gives is final.
func (a *Answer) current() bool {
	return a != nil && a.Host && a.Settled && a.Current && !a.OtherList
}

// vouches reports whether an answer is one that can be sure. complete: each candidate has
// answered.
func (a *Answer) vouches(complete bool) bool {
	return a.current() || complete && a != nil && a.Host && a.Settled && !a.OtherList
}

// passes reports whether a record may be one whose deletion the host, or one of before, has collected. One that
// has expired by then it may have collected as that.
func passes(a *Answer, r *dbadapter.Record) bool {
	if a == nil || !(a.Host && a.Settled || a.Holds) || a.Record != nil || r == nil || r.Deleted || r.Version.Clock > a.Floor {
		return false
	}
	due, expires := r.Due()
	return !expires || due > a.Floor
}
