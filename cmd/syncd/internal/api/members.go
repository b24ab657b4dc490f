package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
)

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

// FormerMember is a node that was a member.
type FormerMember struct {
	ID string    `json:"id"`
	By string    `json:"by" doc:"the admin that ended the membership, or that wrote down that it had expired; the node itself, if it left"`
	At time.Time `json:"at" doc:"by the clock of that admin"`
}

// VoidStatement is a change of the members that does not count.
type VoidStatement struct {
	Hash    string    `json:"hash"`
	Kind    string    `json:"kind" doc:"what it would have done: grant, remove, expire or lapse"`
	By      string    `json:"by" doc:"its author, which lost the right to it by a change made at the same time elsewhere"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject" doc:"the node that it is about"`
	Role    string    `json:"role,omitempty" doc:"of a grant"`
}

// Members are those of a namespace.
type Members struct {
	Members []Member        `json:"members"`
	Former  []FormerMember  `json:"former,omitempty" doc:"nodes that were members; where all were asked for"`
	Voided  []VoidStatement `json:"voided,omitempty" doc:"changes that do not count; where all were asked for"`
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
	if !all {
		return out
	}
	for _, f := range ns.Former() {
		out.Former = append(out.Former, FormerMember{ID: f.ID.String(), By: f.By.String(), At: f.At})
	}
	for _, v := range ns.Voided() {
		one := VoidStatement{Hash: v.Hash, Kind: v.Kind, By: v.By.String(), At: v.At, Subject: v.Subject.String()}
		if v.Role != 0 {
			one.Role = v.Role.String()
		}
		out.Voided = append(out.Voided, one)
	}
	return out
}

// NewRole is the role that a node shall have.
type NewRole struct {
	Role    string `json:"role" doc:"read, write or admin" enum:"read,write,admin"`
	Expires string `json:"expires,omitempty" doc:"for how long it shall be a member, such as 720h; default: without end"`
	Force   bool   `json:"force,omitempty" doc:"also where this node steps down with writes that no sync has proved another member to hold, or as the last admin"`
}

// Invite is a ticket that this node has issued.
type Invite struct {
	ID      string    `json:"id" doc:"names the ticket, and does not let anyone join"`
	Role    string    `json:"role" enum:"read,write,admin"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses" doc:"how many nodes can join by it"`
	UsedBy  []string  `json:"used_by" doc:"the nodes that have joined by it"`
}

// Invites are the tickets that this node has issued and remembers.
type Invites struct {
	Invites []Invite `json:"invites"`
}

// InvitesOf lists the tickets of a namespace.
func InvitesOf(ns *peer.Namespace) Invites {
	out := Invites{[]Invite{}}
	for _, i := range ns.Invites() {
		one := Invite{ID: i.ID, Role: i.Role.String(), Issued: i.Issued, Expires: i.Expires, Uses: i.Uses, UsedBy: []string{}}
		for _, id := range i.UsedBy {
			one.UsedBy = append(one.UsedBy, id.String())
		}
		out.Invites = append(out.Invites, one)
	}
	return out
}

// Removal tells how the membership of this node ended.
type Removal struct {
	By      string    `json:"by" doc:"the admin that ended it, or that had given the role which has expired"`
	At      time.Time `json:"at" doc:"by the clock of that admin"`
	Expired bool      `json:"expired,omitempty" doc:"the role was given for a time"`
}

// Twin is a member whose identity two nodes run with.
type Twin struct {
	ID    string      `json:"id"`
	Heard []time.Time `json:"heard" doc:"when each of the two was heard last"`
}

// Twinned is what a peer has told of a node that runs with this one's identity.
type Twinned struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// membership describes how this node and its twins stand in the namespace.
func (n *Namespace) membership(i *peer.Info) {
	if i.Role == 0 || i.Removed != nil {
		n.Role = "none"
	}
	if i.Removed != nil {
		n.Removed = &Removal{i.Removed.By.String(), i.Removed.At, i.Removed.Expired}
	}
	for _, t := range i.Twins {
		n.Twins = append(n.Twins, Twin{t.ID.String(), t.Heard[:]})
	}
	if i.Twinned != nil {
		n.Twinned = &Twinned{i.Twinned.By.String(), i.Twinned.At}
	}
}
