package api

import (
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Whys is how what this node holds under a key stands to what its peers hold.
type Whys struct {
	Key
	Here  *Head `json:"here,omitempty" doc:"what this node holds; absent if that is nothing"`
	Peers []Why `json:"peers"`
	Body  *Body `json:"body,omitempty" doc:"by placement writer, where the value is; absent: in the record"`
}

// Body is where a value is that stays with its writer.
type Body struct {
	Shard int       `json:"shard"`
	Size  int       `json:"size" doc:"of the value in bytes"`
	Sent  time.Time `json:"sent" doc:"when its writer sent it"`
	Hosts []BodyAt  `json:"hosts"`
}

// BodyAt is what one host has of it.
type BodyAt struct {
	Peer  string `json:"peer"`
	Has   bool   `json:"has" doc:"it has the value"`
	Told  bool   `json:"told" doc:"it knows the record, and answers a read at level one alone"`
	Error string `json:"error,omitempty" doc:"why it has not answered; absent if it has"`
}

// BodyOf is the JSON form.
func BodyOf(b *status.Body) *Body {
	if b == nil {
		return nil
	}
	out := &Body{Shard: b.Shard, Size: b.Size, Sent: b.Sent, Hosts: []BodyAt{}}
	for _, at := range b.Hosts {
		one := BodyAt{Peer: at.Peer.String(), Has: at.Has, Told: at.Told}
		if at.Err != nil {
			one.Error = at.Err.Error()
		}
		out.Hosts = append(out.Hosts, one)
	}
	return out
}

// Why is how a key stands to one peer.
type Why struct {
	Peer     string    `json:"peer"`
	Standing string    `json:"standing" enum:"same,held_by_neither,missing_here,missing_there,newer_here,newer_there,two_contents,unknown" doc:"two_contents: of one version; unknown: the peer did not answer"`
	There    *Head     `json:"there,omitempty" doc:"what the peer says that it holds; absent if that is nothing, or unknown"`
	Causes   []Cause   `json:"causes" doc:"in no order"`
	Asked    time.Time `json:"asked" doc:"when the peer answered, or failed to"`
	Verified time.Time `json:"verified,omitzero" doc:"when a sync has last proved all records equal to the peer's; absent for never"`
}

// Cause is why a key stands as it does.
type Cause struct {
	Kind string `json:"kind" enum:"unreachable,paused,not_a_member_there,busy,failed,declined_there,declined_here,collected_there,collected_here,expired,conflict,lapsed,lists_differ,not_synced_yet"`
	Rule string `json:"rule,omitempty" doc:"by which a record is declined" enum:"clock,signature,writer,floor,full"`
	Text string `json:"text"`
}

// heldOf is nil for a record that is not there.
func heldOf(r *dbadapter.Record) *Head {
	if r.Version.IsZero() {
		return nil
	}
	return headOf(&reconcile.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires})
}

// named is a name in words as JSON has it.
func named[S ~string](words S) string { return strings.ReplaceAll(string(words), " ", "_") }

// WhysOf is the JSON form.
func WhysOf(key []byte, whys []status.Why) Whys {
	out := Whys{Key: KeyOf(key), Peers: []Why{}}
	for i := range whys {
		w := &whys[i]
		out.Here = heldOf(&w.Here)
		one := Why{
			Peer: w.Peer.String(), Standing: named(w.Standing), There: heldOf(&w.There), Causes: []Cause{},
			Asked: w.Asked.Truncate(time.Millisecond), Verified: w.Verified,
		}
		for _, c := range w.Causes {
			one.Causes = append(one.Causes, Cause{named(c.Kind), c.Rule.Name(), c.Text})
		}
		out.Peers = append(out.Peers, one)
	}
	return out
}

// WaitRequest says what to wait for.
type WaitRequest struct {
	Peers   []string `json:"peers,omitempty" doc:"ids of members; without any, all others that have not lapsed"`
	Count   int      `json:"count,omitempty" minimum:"0" doc:"how many of them are enough; 0: all"`
	Key     *string  `json:"key,omitempty" doc:"one key instead of everything, if it is UTF-8"`
	Key64   []byte   `json:"key64,omitempty" doc:"the same, if it is not"`
	Version string   `json:"version,omitempty" doc:"of the key; without it, the one that this node holds"`
	Timeout string   `json:"timeout,omitempty" doc:"after which the wait ends, such as 30s; without it, when the request does"`
}
