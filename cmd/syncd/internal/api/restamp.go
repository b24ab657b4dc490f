package api

import (
	"iter"
	"time"

	"github.com/syncd-io/syncd/peer/status"
)

// FutureRecord is a record whose version is further ahead of the node's clock
// than the namespace allows.
type FutureRecord struct {
	Key
	Version string    `json:"version"`
	Time    time.Time `json:"time" doc:"of the version"`
	Own     bool      `json:"own" doc:"this node wrote it, or imported it with its date: a restamp gives it a version of now"`
}

// MaxFuture is how many records from the future are listed; all are counted.
const MaxFuture = 1000

// Future is what a namespace holds that is from the future.
type Future struct {
	Now     time.Time      `json:"now" doc:"what the node's clock says"`
	Own     int            `json:"own" doc:"records of this node"`
	Others  int            `json:"others" doc:"records of other members: these have to restamp them"`
	Records []FutureRecord `json:"records" doc:"the first 1,000 of them, by key"`
}

// Restamped is what a restamp did, and what it left.
type Restamped struct {
	Restamped int    `json:"restamped" doc:"records that have a version of now"`
	Left      Future `json:"left" doc:"what is from the future still"`
}

// FutureOf lists and counts records from the future.
func FutureOf(now time.Time, all iter.Seq2[status.FutureRecord, error]) (Future, error) {
	f := Future{Now: now.UTC(), Records: []FutureRecord{}}
	for r, err := range all {
		if err != nil {
			return f, err
		}
		if r.Own {
			f.Own++
		} else {
			f.Others++
		}
		if len(f.Records) < MaxFuture {
			f.Records = append(f.Records, FutureRecord{KeyOf(r.Key), r.Version.String(), r.Version.Clock.Time(), r.Own})
		}
	}
	return f, nil
}
