package api

import (
	"cmp"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Policy is what the members of a namespace agree on.
type Policy struct {
	Signed  bool   `json:"signed" doc:"each record carries its writer's signature"`
	MaxSkew string `json:"max_skew" doc:"how far a version may be ahead of the receiver's clock"`
	// Placement is absent where the namespace is one shard.
	Placement *Placement `json:"placement,omitempty" doc:"how the namespace is cut into shards; absent: it is one, which all members hold"`
}

// Namespace describes a namespace of this node.
type Namespace struct {
	status.Namespace
	Policy Policy `json:"policy"`
	Digest string `json:"digest" doc:"equal sets have equal digests"`
	Ahead  string `json:"ahead,omitempty" doc:"by how much the next version would be too far ahead of this machine's clock: writes are refused; absent if they are not"`
}

// NamespaceOf describes a namespace.
func NamespaceOf(ns *peer.Namespace) Namespace {
	info, policy := ns.Info(), ns.Policy()
	out := Namespace{
		Namespace: info, Digest: info.Digest.String(),
		Policy: Policy{Signed: !policy.Unsigned, MaxSkew: policy.MaxSkew.String(), Placement: placementOf(policy.Placement)},
	}
	if info.Ahead > 0 {
		out.Ahead = info.Ahead.Round(time.Second).String()
	}
	return out
}

// Namespaces lists the namespaces of a node.
type Namespaces struct {
	Namespaces []Namespace `json:"namespaces"`
}

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key
	Version string    `json:"version"`
	Peer    string    `json:"peer"`
	Reason  string    `json:"reason"`
	Time    time.Time `json:"time"`
}

// NamespaceStatus is a namespace with its members and refusals.
type NamespaceStatus struct {
	Namespace
	MemberList []Member    `json:"member_list"`
	Rejections []Rejection `json:"rejections"`
	// Cluster is there where it was asked for.
	Cluster []ClusterMember `json:"cluster,omitempty" doc:"what all members have answered that were asked how they are; where that was asked for"`
	// Without and Needed are of a namespace that is cut into shards.
	Without []int         `json:"without_majority,omitempty" doc:"shards of which no majority of the hosts has answered: reads and writes at quorum fail; where the members were asked"`
	Needed  []string      `json:"needed,omitempty" doc:"members that member rm and lapse refuse, since shards would have no majority of their hosts left; where the members were asked"`
	Moves   []status.Move `json:"moves,omitempty" doc:"of a namespace that is cut into shards, the shards that move; where the members were asked"`
}

// NamespaceStatusOf describes a namespace of a node in full.
func NamespaceStatusOf(n *peer.Node, ns *peer.Namespace) NamespaceStatus {
	out := NamespaceStatus{Namespace: NamespaceOf(ns), MemberList: MembersOf(n, ns, false).Members}
	out.Rejections = RejectionsOf(ns.Rejected())
	return out
}

// NewNamespace asks for a namespace.
type NewNamespace struct {
	Name     string `json:"name" doc:"1 to 64 letters, digits, '.', '_' or '-'"`
	Unsigned bool   `json:"unsigned,omitempty" doc:"without signatures: its members trust one another not to forge"`
	MaxSkew  string `json:"max_skew,omitempty" doc:"how far a version may be ahead of the receiver's clock; default 5m"`

	Placement *Placement `json:"placement,omitempty" doc:"how the namespace is cut into shards; default: it is one, which all members hold"`
}

// Invitation asks for a ticket.
type Invitation struct {
	NS      string `json:"ns" doc:"the namespace's local name"`
	Role    string `json:"role,omitempty" doc:"read, write (default) or admin"`
	Expires string `json:"expires,omitempty" doc:"for how long the ticket can be used, at most 8760h; default 24h"`
	Uses    int    `json:"uses,omitempty" doc:"how many nodes can join by the ticket; default 1" minimum:"0"`
}

// Ticket lets nodes join a namespace.
type Ticket struct {
	Ticket string `json:"ticket" doc:"a secret: the first node that presents it becomes a member"`
}

// Joined is a namespace that this node has joined, and what its first sync did.
type Joined struct {
	Namespace
	Fetched int    `json:"fetched" doc:"records that the first sync, with the inviter, has brought"`
	Bytes   int64  `json:"bytes" doc:"that it received, of all kinds"`
	Problem string `json:"problem,omitempty" doc:"why that sync did not end well: the node is a member all the same, and later syncs go on; absent if it did"`
}

// ImportResult counts what became of imported lines.
type ImportResult struct {
	Lines     int   `json:"lines" doc:"read, empty ones included"`
	Records   int64 `json:"records" doc:"read"`
	Written   int64 `json:"written" doc:"new or changed"`
	Unchanged int64 `json:"unchanged" doc:"there already with the same value"`
	Stale     int64 `json:"stale" doc:"dated before the record that is there"`
	Expired   int64 `json:"expired" doc:"had expired, and were left out"`
	Full      int64 `json:"full" doc:"left out, since 64 other records share their index"`
	Refused   int64 `json:"refused" doc:"whose dates are not taken: up to them deleted records may have been collected, or this node's role, given anew, does not cover them; nothing of them was written"`
	AsNew     int64 `json:"as_new" doc:"with such dates, written as of now; among the others"`
	// From, Rejects and Earliest are there where they say something.
	From     *time.Time `json:"from,omitempty" doc:"the date from which on records are taken, where some were refused"`
	Rejects  []Reject   `json:"rejects,omitempty" doc:"the first of those that were refused: 100, or as many as were asked for"`
	Earliest *time.Time `json:"earliest,omitempty" doc:"the earliest date that was taken; an import of several requests gives it with the next one"`
}

// Reject is a record that an import has refused.
type Reject struct {
	Line int `json:"line"`
	Key
	Time time.Time `json:"time" doc:"its date"`
}

// ListedRejects is how many records that are refused an import lists.
const ListedRejects = 100

// ImportResultOf counts what became of a number of lines.
func ImportResultOf(r peer.ImportResult, lines int) ImportResult {
	o := ImportResult{Lines: lines, Records: r.Items, Written: r.Written, Unchanged: r.Unchanged, Stale: r.Stale, Expired: r.Expired, Full: r.Full, Refused: r.Refused, AsNew: r.AsNew}
	if !r.From.IsZero() {
		o.From = &r.From
	}
	if !r.Earliest.IsZero() {
		o.Earliest = &r.Earliest
	}
	return o
}

// Add sums up the results of several requests, one after the other.
func (r *ImportResult) Add(o ImportResult) {
	r.Lines += o.Lines
	r.Records += o.Records
	r.Written += o.Written
	r.Unchanged += o.Unchanged
	r.Stale += o.Stale
	r.Expired += o.Expired
	r.Full += o.Full
	r.Refused += o.Refused
	r.AsNew += o.AsNew
	r.From, r.Earliest = cmp.Or(o.From, r.From), cmp.Or(o.Earliest, r.Earliest)
	r.Rejects = append(r.Rejects, o.Rejects[:min(len(o.Rejects), max(0, ListedRejects-len(r.Rejects)))]...)
}
