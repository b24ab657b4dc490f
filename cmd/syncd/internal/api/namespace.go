package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

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
	Needed  []status.ID   `json:"needed,omitempty" doc:"members that member rm and lapse refuse, since shards would have no majority of their hosts left; where the members were asked"`
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
	Lines int `json:"lines" doc:"read, empty ones included"`
	peer.ImportResult
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
	o := ImportResult{Lines: lines, ImportResult: r}
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
	r.Items += o.Items
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

// Placement says how a namespace is cut into shards.
type Placement struct {
	Kind     string        `json:"kind" doc:"what says which shard a key belongs to: hash, a hash of it; prefix, the longest of its prefixes that the table has, and the hash of a key without one; or writer, a hash of it, while large values stay in shards of the nodes that write them"`
	Shards   int           `json:"shards" doc:"a power of two from 2 to 4096"`
	Replicas int           `json:"replicas" doc:"how many members are to hold each shard, 1 to 16"`
	Prefixes []PrefixShard `json:"prefixes,omitempty" doc:"of the kind prefix: keys that begin so belong to the shard"`
	Inline   *int          `json:"inline,omitempty" minimum:"0" maximum:"65536" doc:"of the kind writer: up to how many bytes a value is in its record; absent: 1024"`
	Locator  bool          `json:"locator,omitempty" doc:"hosts tell all members which keys their shards hold, so that a read at level one of a key that there is not takes no request"`
}

// PrefixShard is a line of the table of the kind prefix.
type PrefixShard struct {
	Prefix   string `json:"prefix,omitempty" doc:"keys that begin so, if it is UTF-8"`
	Prefix64 []byte `json:"prefix64,omitempty" doc:"the prefix, if it is not"`
	Shard    int    `json:"shard"`
}

// PrefixShardOf is the JSON form of a line.
func PrefixShardOf(prefix []byte, shard int) PrefixShard {
	if utf8.Valid(prefix) {
		return PrefixShard{Prefix: string(prefix), Shard: shard}
	}
	return PrefixShard{Prefix64: prefix, Shard: shard}
}

// Bytes are the prefix's bytes.
func (p *PrefixShard) Bytes() []byte {
	if p.Prefix != "" {
		return []byte(p.Prefix)
	}
	return p.Prefix64
}

// Peer is the placement as the library takes it.
func (p *Placement) Peer() *peer.Placement {
	if p == nil {
		return nil
	}
	out := &peer.Placement{Kind: p.Kind, Shards: p.Shards, Replicas: p.Replicas, Inline: p.Inline, Locator: p.Locator}
	if len(p.Prefixes) > 0 {
		out.Prefixes = map[string]int{}
	}
	for _, one := range p.Prefixes {
		out.Prefixes[string(one.Bytes())] = one.Shard
	}
	return out
}

func placementOf(p *peer.Placement) *Placement {
	if p == nil {
		return nil
	}
	out := &Placement{Kind: p.Kind, Shards: p.Shards, Replicas: p.Replicas, Inline: p.Inline, Locator: p.Locator}
	for _, prefix := range slices.Sorted(maps.Keys(p.Prefixes)) {
		out.Prefixes = append(out.Prefixes, PrefixShardOf([]byte(prefix), p.Prefixes[prefix]))
	}
	return out
}

// Forced is what a forced layout has named.
type Forced struct {
	Shards []status.Left `json:"shards" doc:"those that have lost a majority of their old hosts; none: nothing was changed"`
}

// Reindexed is how many records were handed to the hosts of their keys.
type Reindexed struct {
	Records int `json:"records" doc:"those that this node was told as a host of large values; a majority of the hosts of its key has each"`
}

// Member is a node that the list of members gives a role.
type Member struct {
	ID      string    `json:"id"`
	Role    string    `json:"role" enum:"read,write,admin"`
	Since   time.Time `json:"since" doc:"by the clock of the admin that gave the role"`
	By      string    `json:"by" doc:"the admin that gave the role"`
	Expires time.Time `json:"expires,omitzero" doc:"when the membership ends; absent: never"`
	Lapsed  bool      `json:"lapsed,omitempty" doc:"the collection of deleted records does not wait for it"`
	Self    bool      `json:"self,omitempty" doc:"this node"`
	Synced  time.Time `json:"synced,omitzero" doc:"when this node last synced with it; absent: not since the daemon was started"`
	Addrs   []string  `json:"addrs" doc:"under which this node can dial it"`
}

// Members are those of a namespace.
type Members struct {
	Members []Member               `json:"members"`
	Former  []status.FormerMember  `json:"former,omitempty" doc:"nodes that were members; where all were asked for"`
	Voided  []status.VoidStatement `json:"voided,omitempty" doc:"changes that do not count; where all were asked for"`
}

// MembersOf is the list of members of a namespace, with the addresses that its
// node knows, and if all is set what has been.
func MembersOf(n *peer.Node, ns *peer.Namespace, all bool) Members {
	addrs := map[peer.ID][]string{n.ID(): n.Addrs()}
	for _, p := range n.Peers() {
		addrs[p.ID] = p.Addrs
	}
	out := Members{Members: []Member{}}
	for _, m := range ns.Members() {
		out.Members = append(out.Members, Member{
			ID: m.ID.String(), Role: m.Role.String(), Since: m.Since, By: m.By.String(), Expires: m.Expires, Lapsed: m.Lapsed,
			Self: m.ID == n.ID(), Synced: m.Synced, Addrs: list(addrs[m.ID]),
		})
	}
	if all {
		out.Former, out.Voided = ns.Former(), ns.Voided()
	}
	return out
}

// NewRole is the role that a node shall have.
type NewRole struct {
	Role    string `json:"role" doc:"read, write or admin" enum:"read,write,admin"`
	Expires string `json:"expires,omitempty" doc:"for how long it shall be a member, such as 720h; default: without end"`
	Force   bool   `json:"force,omitempty" doc:"also where this node steps down with writes that no sync has proved another member to hold, or as the last admin"`
}

// Invites are the tickets that this node has issued and remembers.
type Invites struct {
	Invites []status.Invite `json:"invites"`
}

// ParseID reads the text form of a node's id (12D3Koo…).
func ParseID(s string) (peer.ID, error) {
	var id peer.ID
	if err := id.UnmarshalText([]byte(s)); err != nil {
		return "", fmt.Errorf("%w: peer id %q: %w", peer.ErrInvalid, s, err)
	}
	return id, nil
}

// ClusterMember is how a member of a namespace is.
type ClusterMember struct {
	status.ClusterMember
	Reachable bool          `json:"reachable" doc:"it has answered; else there is a problem, and what is known here: verified"`
	Problem   string        `json:"problem,omitempty" doc:"why it has not answered"`
	TookMS    float64       `json:"took_ms" doc:"how long the answer took, with the dial where there was no connection"`
	Digest    string        `json:"digest,omitempty" doc:"of these; absent where the namespace is cut into shards"`
	Behind    float64       `json:"behind_seconds" doc:"by how much its newest version is older than this node's; 0 if it is not, or both hold the same"`
	Offset    float64       `json:"clock_offset_seconds" doc:"by how much this node's clock is ahead of its"`
	OffsetErr float64       `json:"clock_error_seconds" doc:"the truth lies within this of the offset"`
	Shards    []MemberShard `json:"shards,omitempty" doc:"that it holds, or is a host of, where the namespace is cut into shards"`
}

// MemberShard is how a member holds a shard.
type MemberShard struct {
	status.MemberShard
	Problem string `json:"problem,omitempty" doc:"why it is not known what it holds"`
	Digest  string `json:"digest,omitempty" doc:"of these"`
}

// ClusterOf is the JSON form of what the members have answered.
func ClusterOf(all []status.ClusterMember) []ClusterMember {
	out := make([]ClusterMember, 0, len(all))
	for _, m := range all {
		one := ClusterMember{
			ClusterMember: m, Reachable: m.Problem == nil, TookMS: float64(m.Took) / float64(time.Millisecond),
			Behind: m.Behind.Seconds(), Offset: m.Offset.Seconds(), OffsetErr: m.OffsetError.Seconds(),
		}
		if m.Problem != nil {
			one.Problem = m.Problem.Error()
		} else if m.Shards == nil {
			one.Digest = m.Digest.String()
		}
		for _, sh := range m.Shards {
			shard := MemberShard{MemberShard: sh}
			if sh.Problem != nil {
				shard.Problem = sh.Problem.Error()
			} else {
				shard.Digest = sh.Digest.String()
			}
			one.Shards = append(one.Shards, shard)
		}
		out = append(out, one)
	}
	return out
}
