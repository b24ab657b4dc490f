package api

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
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
