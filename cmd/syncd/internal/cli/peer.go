package cli

import (
	"context"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
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
	id, err := client.Send(ctx, daemon, api.AddPeer, api.NewPeer{Addr: c.Addr})
	return a.answer(attempt(err, "add peer %s", c.Addr), id, func() { a.printf("%s\n", id.ID) })
}

type peerLsCmd struct{}

// Run lists the peers.
func (peerLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	got, err := client.Ask(ctx, daemon, api.ListPeers, api.None{})
	return a.answer(attempt(err, "list peers"), got.Peers, func() {
		t := a.table("peer", "connected", "paused", "namespaces", "addresses")
		for _, p := range got.Peers {
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
	_, err := client.Ask(ctx, daemon, api.RemovePeer, api.PeerParams{ID: c.ID})
	return a.done(attempt(err, "remove peer %s", c.ID), map[string]string{"removed": c.ID},
		"forgot %s; remember it again with: syncd peer add MULTIADDR", c.ID)
}

type pauseCmd struct{ nsArg }

func (pauseCmd) Help() string {
	return `The node begins no syncs of the namespace, and a member that begins one is told to try again later (exit 5); syncs that run are cut, and what they brought stays. Reads and writes go on. It holds until syncd resume, also after a restart. The other members keep what is deleted meanwhile until this node has heard of it.

In a namespace of shards this node and the others go on to read and write one another's shards. A shard that moves to this node, or away from it, goes on moving after syncd resume.

Example:
    syncd pause notes`
}

// Run pauses the namespace.
func (c pauseCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.Pause, api.OfNS(c.NS))
	return a.done(attempt(err, "pause %q", c.NS), map[string]string{"paused": c.NS},
		"%s takes part in no syncs on this node; it does again after: syncd resume %s", c.NS, c.NS)
}

type resumeCmd struct{ nsArg }

func (resumeCmd) Help() string {
	return `Example:
    syncd resume notes`
}

// Run resumes the namespace.
func (c resumeCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.Resume, api.OfNS(c.NS))
	return a.done(attempt(err, "resume %q", c.NS), map[string]string{"resumed": c.NS},
		"%s takes part in syncs again; to sync at once: syncd sync --ns %s", c.NS, c.NS)
}

type peerPauseCmd struct {
	ID string `arg:"" help:"The peer's id."`
}

func (peerPauseCmd) Help() string {
	return `The node begins no syncs with the peer, in no namespace, and the peer is told to try again later (exit 5) when it begins one; syncs that run are cut, and what they brought stays. It holds until syncd peer resume, also after a restart. The connection stays, and what the peer writes may come by way of others.

Example:
    syncd peer pause 12D3KooW…`
}

// Run pauses the peer.
func (c peerPauseCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.PausePeer, api.PeerParams{ID: c.ID})
	return a.done(attempt(err, "pause peer %s", c.ID), map[string]string{"paused": c.ID},
		"this node syncs with %s no more; it does again after: syncd peer resume %s", c.ID, c.ID)
}

type peerResumeCmd struct {
	ID string `arg:"" help:"The peer's id."`
}

func (peerResumeCmd) Help() string {
	return `Example:
    syncd peer resume 12D3KooW…`
}

// Run resumes the peer.
func (c peerResumeCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.ResumePeer, api.PeerParams{ID: c.ID})
	return a.done(attempt(err, "resume peer %s", c.ID), map[string]string{"resumed": c.ID},
		"this node syncs with %s again; to sync at once: syncd sync %s", c.ID, c.ID)
}

// pauses says what of a namespace's syncs a person has paused.
func pauses(ns *api.Namespace) []string {
	if !ns.Paused {
		return nil
	}
	return []string{"paused: it takes part in no syncs on this node until: syncd resume " + ns.Name}
}
