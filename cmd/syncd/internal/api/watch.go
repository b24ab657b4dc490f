package api

import (
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/peer"
)

// MaxWatchBody bounds the body of a watch: the cursor of as many shards as there can be.
const MaxWatchBody = 8 << 20

// WatchRequest says where a watch begins.
type WatchRequest struct {
	Since string `json:"since,omitempty" doc:"the cursor of an event, behind which the watch goes on; start: what is held comes first, and an event at; absent: from now on"`
}

// Event is what a watch tells of a key.
type Event struct {
	Cursor string `json:"cursor" doc:"with which a watch goes on behind this event"`
	Kind   string `json:"kind" enum:"put,delete,gone,at,expired" doc:"put: the key holds a record; delete: it was deleted; expired: the record that was told of has expired; gone: it holds nothing any more, not even that it was deleted; at: of no key, all up to the cursor was told"`
	Key
	Value   *string   `json:"value,omitempty" doc:"of a put, the value, if it is UTF-8"`
	Value64 []byte    `json:"value64,omitempty" doc:"of a put, the value, if it is not"`
	Version string    `json:"version,omitempty" doc:"of a put or a delete"`
	Time    time.Time `json:"time,omitzero" doc:"of the version"`
	Expires time.Time `json:"expires,omitzero" doc:"when the record expires; absent if it does not"`
	// Coalesced is as in peer.Event.
	Coalesced bool `json:"coalesced,omitempty" doc:"earlier changes of the key, of which this watch has not told, are passed over, or may be"`
}

// EventOf is the JSON form of an event.
func EventOf(e *peer.Event) Event {
	out := Event{Cursor: string(e.Cursor), Kind: e.Kind.String(), Coalesced: e.Coalesced}
	if e.Kind == peer.EventAt {
		return out
	}
	out.Key = KeyOf(e.Key)
	if e.Kind == peer.EventGone || e.Kind == peer.EventExpired {
		return out
	}
	out.Version, out.Time = e.Record.Version.String(), e.Record.Version.Clock.Time()
	if e.Kind == peer.EventPut {
		out.Expires = ExpiryOf(&e.Record)
		if s := string(e.Record.Value); utf8.ValidString(s) {
			out.Value = &s
		} else {
			out.Value64 = e.Record.Value
		}
	}
	return out
}
