package api

import (
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// KeyDifference is a line of a list of keys that differ. The last line is of the kind end, or
// error.
type KeyDifference struct {
	Kind string `json:"kind" enum:"missing_here,missing_there,newer_here,newer_there,conflict,end,error" doc:"conflict: the writer of the greater version did not know of the other one; end: of no key, the last line; error: instead of it"`
	Key
	Here  *Head  `json:"here,omitempty" doc:"this node's record; absent where it is missing"`
	There *Head  `json:"there,omitempty" doc:"the peer's record, by its word; absent where it is missing"`
	Wins  string `json:"wins,omitempty" enum:"here,there" doc:"of two records, the one that stands after a sync"`
	// The rest is of the last line.
	More    bool    `json:"more,omitempty" doc:"of end: the limit kept further keys out"`
	Report  *Report `json:"report,omitempty" doc:"of end and error: what the dry run found"`
	Problem any     `json:"problem,omitempty" doc:"of error: a problem, as in application/problem+json"`
}

// Head is a record without its key and value.
type Head struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time" doc:"of the version"`
	Deleted bool      `json:"deleted,omitempty"`
	Expires time.Time `json:"expires,omitzero" doc:"when the record expires; absent if it does not"`
}

// The kinds of the last line.
const (
	KindEnd   = "end"
	KindError = "error"
)

// KeyDifferenceOf is the line of a key.
func KeyDifferenceOf(d *reconcile.KeyDifference) KeyDifference {
	out := KeyDifference{Key: KeyOf(d.Key), Kind: strings.ReplaceAll(d.Kind.String(), " ", "_")}
	if d.Kind != reconcile.MissingHere {
		out.Here = headOf(&d.Here)
	}
	if d.Kind != reconcile.MissingThere {
		out.There = headOf(&d.There)
	}
	switch {
	case out.Here == nil || out.There == nil:
	case d.HereWins:
		out.Wins = "here"
	default:
		out.Wins = "there"
	}
	return out
}

// headOf is the JSON form of what may be a peer's word: the time of a version that lies
// after the year 9999, which JSON cannot write, is that year's end.
func headOf(h *reconcile.Head) *Head {
	out := &Head{Version: h.Version.String(), Time: min(h.Version.Clock, dbadapter.MaxExpires).Time(), Deleted: h.Deleted}
	if h.Expires != 0 {
		out.Expires = h.Expires.Time()
	}
	return out
}
