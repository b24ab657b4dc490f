package api

import (
	"cmp"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Report tells what a sync found, moved and proved, as the side saw it that
// answers.
type Report struct {
	reconcile.Report
	Method        string         `json:"method" doc:"how the differences were found: same, sketch, parts or all"`
	DeclinedHere  map[string]int `json:"declined_here,omitempty" doc:"of the peer's records, those that this node declined, by reason: clock, signature, writer, floor, full, or earlier for those of an earlier sync"`
	DeclinedThere map[string]int `json:"declined_there,omitempty" doc:"of this node's records, those that the peer declined, by reason; clock: is this machine's clock right?"`
	Repair        string         `json:"repair" doc:"what was found where the cells did not prove themselves; empty if they did"`
}

// ReportOf is the JSON form of a report.
func ReportOf(r *reconcile.Report) Report {
	return Report{
		Report: *r, Method: r.Method.String(), Repair: r.Repair.String(),
		DeclinedHere: reasons(&r.DeclinedHere), DeclinedThere: reasons(&r.DeclinedThere),
	}
}

// reasons are those that there are.
func reasons(r *reconcile.Reasons) map[string]int {
	out := map[string]int{}
	for why, n := range r {
		if n > 0 {
			out[cmp.Or(wire.Reason(why).Name(), "earlier")] = n
		}
	}
	return out
}

// SyncRequest asks for a sync.
type SyncRequest struct {
	Peer     string `json:"peer" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
	NS       string `json:"ns" doc:"the namespace's local name"`
	Prefix   string `json:"prefix,omitempty" doc:"only keys that begin with it"`
	Prefix64 []byte `json:"prefix64,omitempty" doc:"the prefix, if it is not UTF-8"`
	Dir      string `json:"dir,omitempty" enum:"both,pull,push" doc:"which way records may go; default both"`
	Method   string `json:"method,omitempty" enum:"auto,sketch,all" doc:"default auto: the cheapest"`
	DryRun   bool   `json:"dry_run,omitempty" doc:"find the differences, change nothing"`
}

// SyncEnd is a sync that has ended.
type SyncEnd struct {
	Time     time.Time `json:"time"`
	Incoming bool      `json:"incoming" doc:"the peer began it"`
	DryRun   bool      `json:"dry_run" doc:"it found the differences and moved nothing"`
	Report   Report    `json:"report"`
	Error    string    `json:"error,omitempty"`
}

// Syncs are the last syncs, the latest first.
type Syncs struct {
	Syncs []SyncEnd `json:"syncs"`
	// Running are the reports so far of syncs that callers wait for.
	Running []Report `json:"running,omitempty"`
}

// SyncsOf is the JSON form of the last syncs.
func SyncsOf(all []status.Sync) Syncs {
	out := Syncs{Syncs: make([]SyncEnd, 0, len(all))}
	for _, r := range all {
		out.Syncs = append(out.Syncs, SyncEnd{r.Time, r.Incoming, r.DryRun, ReportOf(&r.Report), r.Error})
	}
	return out
}

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

// Whys is how what this node holds under a key stands to what its peers hold.
type Whys struct {
	Key
	Here  *Head        `json:"here,omitempty" doc:"what this node holds; absent if that is nothing"`
	Peers []Why        `json:"peers"`
	Body  *status.Body `json:"body,omitempty" doc:"by placement writer, where the value is; absent: in the record"`
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

// Located is where a key of a namespace of shards is, and what its hosts say of it.
type Located struct {
	Key
	Shard  int         `json:"shard"`
	Hosts  []string    `json:"hosts" doc:"the members that hold the shard; while it moves, its old hosts and its new ones; none: no layout is known here yet"`
	Moving bool        `json:"moving,omitempty" doc:"the shard moves: its old hosts and its new ones differ"`
	Holds  *Head       `json:"holds,omitempty" doc:"what the key was found to hold; absent if that is nothing"`
	Asked  []LocatedAt `json:"asked" doc:"the hosts that were asked, this node among them if it is one"`
	// Locator is what the locator says.
	Locator *LocatorSays `json:"locator,omitempty" doc:"what the locator says, on which reads at level one rest; absent if the namespace has none"`
}

// LocatorSays is where a key is by what this node has heard from a host of its shard.
type LocatorSays struct {
	Where string `json:"where" enum:"unknown,nowhere,in a shard,here" doc:"here: this node is a whole host of the key's shard, and reads its own records; unknown: hosts are asked"`
	Shard int    `json:"shard,omitempty" doc:"that of the value, where it is in a shard"`
	Host  string `json:"host,omitempty" doc:"the host that was heard last; absent: none was"`
	Age   string `json:"age,omitempty" doc:"how long ago that host was asked for what it has said"`
	Fresh bool   `json:"fresh,omitempty" doc:"that was short enough ago for a key to be nowhere"`
}

// LocatedAt is what one host has answered.
type LocatedAt struct {
	Peer    string `json:"peer"`
	Old     bool   `json:"old" doc:"it is one of the shard's old hosts; at rest they are the new ones, too"`
	New     bool   `json:"new" doc:"it is one of the shard's new hosts"`
	Whole   bool   `json:"whole" doc:"it has all that it must have, so that its answer counts as an old host's"`
	Version string `json:"version,omitempty" doc:"of the record that it holds; absent: it holds none, or has not answered"`
	Took    string `json:"took,omitempty" doc:"how long its answer took"`
	Error   string `json:"error,omitempty" doc:"why it has not answered; absent if it has"`
}

// LocatedOf is the JSON form.
func LocatedOf(key []byte, l *status.Located) Located {
	out := Located{Key: KeyOf(key), Shard: l.Shard, Hosts: []string{}, Moving: l.Moving, Asked: []LocatedAt{}}
	for _, id := range l.Hosts {
		out.Hosts = append(out.Hosts, id.String())
	}
	if l.Record != nil {
		out.Holds = heldOf(l.Record)
	}
	if s := l.Locator; s != nil {
		out.Locator = &LocatorSays{Where: s.Where, Shard: s.Shard, Fresh: s.Fresh}
		if s.Age > 0 {
			out.Locator.Host, out.Locator.Age = s.Host.String(), s.Age.Round(time.Millisecond).String()
		}
	}
	for _, at := range l.Asked {
		one := LocatedAt{Peer: at.Peer.String(), Old: at.Old, New: at.New, Whole: at.Whole}
		if !at.Version.IsZero() {
			one.Version = at.Version.String()
		}
		if at.Took > 0 {
			one.Took = at.Took.Round(time.Microsecond).String()
		}
		if at.Err != nil {
			one.Error = at.Err.Error()
		}
		out.Asked = append(out.Asked, one)
	}
	return out
}
