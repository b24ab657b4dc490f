package cli

import (
	"context"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer/status"
)

type peerCmd struct {
	Add    peerAddCmd    `cmd:"" help:"Remember a peer's address; this gives it no rights."`
	Ls     peerLsCmd     `cmd:"" help:"List known peers."`
	Rm     peerRmCmd     `cmd:"" help:"Forget a peer until it is added again; where it is a member, it stays one."`
	Pause  peerPauseCmd  `cmd:"" help:"End the syncs with a peer, in all namespaces."`
	Resume peerResumeCmd `cmd:"" help:"Sync with a peer again."`
}

type peerAddCmd struct {
	Addr string `arg:"" name:"multiaddr" help:"Address that ends in /p2p/ and the peer's id, as syncd status prints it."`
}

func (peerAddCmd) Help() string {
	return `Example:
    syncd peer add /ip4/192.0.2.7/tcp/4747/p2p/12D3KooW…`
}

// Run remembers the address.
func (c peerAddCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	id, err := daemon.AddPeer(ctx, c.Addr)
	return a.answer(attempt(err, "add peer %s", c.Addr), map[string]string{"id": id}, func() { a.printf("%s\n", id) })
}

type peerLsCmd struct{}

// Run lists the peers.
func (peerLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	peers, err := daemon.Peers(ctx)
	return a.answer(attempt(err, "list peers"), peers, func() {
		t := a.table("peer", "connected", "paused", "namespaces", "addresses")
		for _, p := range peers {
			t.row(p.ID.String(), yesNo(p.Connected), yesNo(p.Paused), orDash(p.Namespaces), orDash(p.Addrs))
		}
		t.print()
	})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// texts are the ids as a person reads them.
func texts(ids []status.ID) (all []string) {
	for _, id := range ids {
		all = append(all, id.String())
	}
	return all
}

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}

type peerRmCmd struct {
	ID string `arg:"" help:"The peer's id."`
}

func (peerRmCmd) Help() string {
	return `Ends the connection to the peer, forgets its addresses, and takes no new ones that it tells, until it is added again or a ticket is used. Where it is a member it stays one, and can still connect to this node.

Example:
    syncd peer rm 12D3KooW…`
}

// Run forgets the peer.
func (c peerRmCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	err := daemon.RemovePeer(ctx, c.ID)
	return a.done(attempt(err, "remove peer %s", c.ID), map[string]string{"removed": c.ID},
		"forgot %s; remember it again with: syncd peer add MULTIADDR", c.ID)
}
