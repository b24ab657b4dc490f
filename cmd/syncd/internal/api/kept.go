package api

import (
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

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
		Time: r.Version.Clock.Time(), Deleted: r.Deleted, Size: ns.KeptSize(k), At: k.At,
	}
	if id, ok := ns.ByWriter(r.Version.Writer); ok {
		out.Member = id.String()
	}
	if r.Expires != 0 {
		out.Expires = r.Expires.Time()
	}
	if !k.By.IsZero() {
		out.By = k.By.String()
	}
	return out
}

// KeptValue is an entry with its value.
type KeptValue struct {
	Kept
	Value   *string `json:"value,omitempty" doc:"the value, if it is UTF-8; absent for a deletion"`
	Value64 []byte  `json:"value64,omitempty" doc:"the value, if it is not"`
}

// KeptValueOf describes an entry of the kept log with this value.
func KeptValueOf(ns *peer.Namespace, k *dbadapter.Kept, value []byte) KeptValue {
	out := KeptValue{Kept: KeptOf(ns, k)}
	switch {
	case k.Record.Deleted:
	case utf8.Valid(value):
		s := string(value)
		out.Value = &s
	default:
		out.Value64 = value
	}
	return out
}

// Bytes are the value's bytes.
func (k *KeptValue) Bytes() []byte {
	if k.Value != nil {
		return []byte(*k.Value)
	}
	return k.Value64
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
