package api

import (
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Key is a key in JSON: as text, or as base64 where it is not UTF-8.
type Key struct {
	Key   *string `json:"key,omitempty" doc:"the key, if it is UTF-8"`
	Key64 []byte  `json:"key64,omitempty" doc:"the key, if it is not"`
}

// KeyOf is the JSON form of a key.
func KeyOf(b []byte) Key {
	if s := string(b); utf8.ValidString(s) {
		return Key{Key: &s}
	}
	return Key{Key64: b}
}

// Bytes are the key's bytes.
func (k Key) Bytes() []byte {
	if k.Key != nil {
		return []byte(*k.Key)
	}
	return k.Key64
}

// Content is a value in JSON: as text, or as base64 where it is not UTF-8. What has no value has neither.
type Content struct {
	Value   *string `json:"value,omitempty" doc:"the value, if there is one and it is UTF-8"`
	Value64 []byte  `json:"value64,omitempty" doc:"the value, if it is not"`
}

// ContentOf is the JSON form of a value.
func ContentOf(b []byte) Content {
	k := KeyOf(b)
	return Content{k.Key, k.Key64}
}

// Bytes are the value's bytes.
func (c Content) Bytes() []byte { return Key{c.Value, c.Value64}.Bytes() }

// KeyInfo is one key of a list.
type KeyInfo struct {
	Key
	Size    int       `json:"size" doc:"of the value, in bytes"`
	Version string    `json:"version"`
	Time    time.Time `json:"time" doc:"of the version"`
	Expires time.Time `json:"expires,omitzero" doc:"when the record expires; absent if it does not"`
}

// KeyInfoOf describes a record with a value of a size.
func KeyInfoOf(r *dbadapter.Record, size int) KeyInfo {
	return KeyInfo{Key: KeyOf(r.Key), Size: size, Version: r.Version.String(), Time: r.Version.Clock.Time(), Expires: ExpiryOf(r)}
}

// ExpiryOf is when a record expires; the zero time if it does not.
func ExpiryOf(r *dbadapter.Record) time.Time {
	if r.Expires == 0 {
		return time.Time{}
	}
	return r.Expires.Time()
}

// KeyList is a page of keys, in the order of their bytes.
type KeyList struct {
	Keys   []KeyInfo `json:"keys"`
	Cursor string    `json:"cursor,omitempty" doc:"where the next page begins; absent on the last"`
}

// Version is the version that a write has made.
type Version struct {
	Version string `json:"version"`
}

// Headers of a read that too few hosts have answered.
const (
	// AnswersHeader is how many hosts have answered, and of how many: 1/3.
	AnswersHeader = "Syncd-Answers"
	// DetailHeader is what the detail of a problem says, where the body is what was found.
	DetailHeader = "Syncd-Detail"
)

// ExportProblem begins the last line of an export that an error ends: the problem and a brace follow. No
// record's line begins so.
const ExportProblem = `{"problem":`

// MaxBatchBody bounds the body of a batch, in bytes: 1.5 MiB of text whose every byte is
// escaped as \u00XX, and room for the names of 4,096 items.
const MaxBatchBody = 16 << 20

// BatchItem is one write of a batch.
type BatchItem struct {
	Key
	Content
	Delete bool   `json:"delete,omitempty" doc:"make the record a tombstone, whether or not it is there"`
	TTL    string `json:"ttl,omitempty" doc:"after which time the record expires, such as 90s or 720h; without it, never"`
	// IfVersion and IfAbsent are the conditions of If-Match and If-None-Match: *.
	IfVersion string `json:"if_version,omitempty" doc:"the version that the key must hold, else nothing of the batch is written"`
	IfAbsent  bool   `json:"if_absent,omitempty" doc:"the key must hold nothing, not even a deleted or expired record"`
}

// Versions are those that the writes of a batch have made, in their order.
type Versions struct {
	Versions []string `json:"versions"`
}

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
	Content
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
		out.Content = ContentOf(e.Record.Value)
	}
	return out
}

// Kept is a record that left the set and is kept by one node.
type Kept struct {
	Seq uint64 `json:"seq" doc:"the entry's number"`
	Key
	Version string    `json:"version"`
	Writer  string    `json:"writer" doc:"of the version"`
	Member  string    `json:"member,omitempty" doc:"the member, or former member, that is the writer; absent where the list of members has no such node"`
	Time    time.Time `json:"time" doc:"of the version"`
	Deleted bool      `json:"deleted,omitempty" doc:"it is a deletion"`
	Size    int       `json:"size" doc:"of the value, in bytes"`
	Expires time.Time `json:"expires,omitzero" doc:"from when on it would read as absent"`
	By      string    `json:"by,omitempty" doc:"the version that took its place; absent where it was set aside"`
	At      time.Time `json:"at" doc:"when it left the set"`
	// KeptBy is set by a namespace that is cut into shards.
	KeptBy string `json:"kept_by,omitempty" doc:"the member that keeps it, in a namespace that is cut into shards: it is shown, restored and forgotten there"`
}

// KeptOf describes an entry of the kept log, without its value.
func KeptOf(ns *peer.Namespace, k *dbadapter.Kept) Kept {
	r := &k.Record
	out := Kept{
		Seq: k.Seq, Key: KeyOf(r.Key), Version: r.Version.String(), Writer: r.Version.Writer.String(),
		Time: r.Version.Clock.Time(), Deleted: r.Deleted, Size: ns.KeptSize(k), Expires: ExpiryOf(r), At: k.At,
	}
	if id, ok := ns.ByWriter(r.Version.Writer); ok {
		out.Member = id.String()
	}
	if !k.By.IsZero() {
		out.By = k.By.String()
	}
	return out
}

// KeptValue is an entry with its value.
type KeptValue struct {
	Kept
	Content
}

// KeptValueOf describes an entry of the kept log with this value.
func KeptValueOf(ns *peer.Namespace, k *dbadapter.Kept, value []byte) KeptValue {
	out := KeptValue{Kept: KeptOf(ns, k)}
	if !k.Record.Deleted {
		out.Content = ContentOf(value)
	}
	return out
}

// KeptList is a page of entries, the oldest first.
type KeptList struct {
	Entries []Kept `json:"entries"`
	Cursor  uint64 `json:"cursor,omitempty" doc:"where the next page begins; absent on the last"`
	// Others is set by a page of this node's own.
	Others []string `json:"others,omitempty" doc:"the other members that say that they keep entries, in a namespace that is cut into shards: member gives theirs"`
	// Refused is of rejected alone.
	Refused []Rejection `json:"refused,omitempty" doc:"records that peers offered and this node refused since it was started; they are not kept, and cannot be shown or restored"`
}

// Restored is what restoring an entry came to.
type Restored struct {
	Version string `json:"version,omitempty" doc:"that the key has now; absent where the entry was a deletion and the key held no record"`
}

// Forgotten is how many entries were forgotten.
type Forgotten struct {
	Forgotten int `json:"forgotten"`
}

// RejectionsOf describes refusals.
func RejectionsOf(list []status.Rejection) []Rejection {
	out := []Rejection{}
	for _, r := range list {
		out = append(out, Rejection{
			Key: KeyOf(r.Key), Version: r.Version.String(), Peer: r.Peer.String(), Reason: r.Reason, Time: r.Time,
		})
	}
	return out
}
