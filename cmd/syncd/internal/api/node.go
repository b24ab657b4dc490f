package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Peers are the address book, and the members of all namespaces.
type Peers struct {
	Peers []status.Peer `json:"peers"`
}

// list makes nil an empty list, which is what JSON readers expect.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// NewPeer is an address to remember.
type NewPeer struct {
	Addr string `json:"addr" doc:"a multiaddr that ends in /p2p/ and the peer's id"`
}

// PeerID names a peer.
type PeerID struct {
	ID string `json:"id"`
}

// Status describes the node.
type Status struct {
	ID         string            `json:"id"`
	Addrs      []string          `json:"addrs" doc:"under which it can be dialled"`
	Started    time.Time         `json:"started"`
	Syncs      int               `json:"syncs" doc:"running now"`
	Namespaces []Namespace       `json:"namespaces"`
	Peers      []status.Peer     `json:"peers"`
	Unserved   []status.Unserved `json:"unserved" doc:"namespaces that could not be opened for damage to their records, which a repair makes be served again, or to their folders"`
	Damage     *status.Damage    `json:"damage,omitempty" doc:"what was met of damage to the store's files that is no namespace's alone, until all namespaces were verified since, or a repair; absent if nothing"`
	Troubles   []status.Trouble  `json:"troubles" doc:"states in which the node cannot do its work, some seconds old at most; /readyz answers 503 while there is one"`
	Clock      *Clock            `json:"clock,omitempty" doc:"how this machine's clock compares with its peers'; absent if no clock was measured in the last hour"`
}

// Clock compares this machine's clock with those of its peers.
type Clock struct {
	Offset float64 `json:"offset_seconds" doc:"how far it is ahead of the median of the peers' clocks; less than 0 if it is behind"`
	Error  float64 `json:"error_seconds" doc:"the truth lies within this of the offset"`
	Peers  int     `json:"peers" doc:"that were measured"`
	Off    bool    `json:"off" doc:"the clocks differ by more than a second, whatever the network has added"`
}

// StatusOf describes a node as it is now.
func StatusOf(n *peer.Node) Status {
	out := Status{
		ID: n.ID().String(), Addrs: list(n.Addrs()), Started: n.Started(), Syncs: n.Syncing(),
		Namespaces: []Namespace{}, Peers: n.Peers(),
		Damage: n.Damage(), Unserved: n.Unserved(), Troubles: n.Troubles(),
	}
	if o, ok := n.ClockOffset(); ok {
		out.Clock = &Clock{o.By.Seconds(), o.Error.Seconds(), o.Peers, o.Off}
	}
	for _, ns := range n.Namespaces() {
		out.Namespaces = append(out.Namespaces, NamespaceOf(ns))
	}
	return out
}

// Program describes a program's build.
type Program struct {
	Version  string `json:"version" doc:"of the module"`
	Revision string `json:"revision,omitempty" doc:"of the source"`
	Modified bool   `json:"modified,omitempty" doc:"the source had been changed since the revision"`
	Go       string `json:"go" doc:"version of the compiler"`
	Platform string `json:"platform" doc:"operating system and architecture"`
}
