package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Peers lists the address book and the members of all namespaces, by id, but for
// peers that were removed.
func (n *Node) Peers() []status.Peer {
	in := map[ID][]string{}
	for _, id := range n.book.IDs() {
		in[id] = []string{}
	}
	for _, ns := range n.Namespaces() {
		for _, m := range ns.Members() {
			if m.ID != n.self.id && !n.book.Removed(m.ID) {
				in[m.ID] = append(in[m.ID], ns.Name())
			}
		}
	}
	out := make([]status.Peer, 0, len(in))
	for id, names := range in {
		p := status.Peer{ID: id, Addrs: []string{}, Connected: n.host.Connected(id), Paused: n.book.Paused(id), Namespaces: names}
		for _, a := range n.book.Addrs(id) {
			p.Addrs = append(p.Addrs, a.String())
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b status.Peer) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}

// AddPeer remembers a multiaddr that ends in /p2p/ and the peer's id, without
// dialling it. An address gives its peer no rights.
func (n *Node) AddPeer(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeer(addr)
	if err != nil {
		return "", err
	}
	if err := n.within(ctx, "add peer "+info.ID.String(), func(context.Context) error { return n.book.Give(info.ID, info.Addrs) }); err != nil {
		return "", err
	}
	return info.ID, nil
}

// RemovePeer forgets a peer's addresses and ends the connection to it. Where it is a
// member it stays one, and can still connect. But this node takes no address of it, and
// does not list it, until it is added again by AddPeer, Connect or a ticket.
// ErrNotFound: Peers does not list it.
func (n *Node) RemovePeer(ctx context.Context, id ID) error {
	return n.within(ctx, "remove peer "+id.String(), func(context.Context) error {
		if err := n.mustKnow(id); err != nil {
			return err
		}
		if err := n.book.Remove(id); err != nil {
			return err
		}
		err := n.host.Network().ClosePeer(id)
		n.host.Peerstore().ClearAddrs(id)
		return err
	})
}

// mustKnow reports ErrNotFound of a peer that Peers does not list.
func (n *Node) mustKnow(id ID) error {
	if slices.ContainsFunc(n.Peers(), func(p status.Peer) bool { return p.ID == id }) {
		return nil
	}
	return fmt.Errorf("%w: it is not in the address book, and not a member", ErrNotFound)
}

// Connect dials a multiaddr that ends in /p2p/ and the peer's id, and
// remembers it in the address book.
func (n *Node) Connect(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeer(addr)
	if err != nil {
		return "", err
	}
	if !n.gate.enter() {
		return "", fmt.Errorf("connect to %s: %w", info.ID, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	if err := n.host.Dial(ctx, info.ID, info.Addrs); err != nil {
		return "", err
	}
	return info.ID, n.book.Give(info.ID, info.Addrs)
}

// parsePeer reads a multiaddr that ends in /p2p/ and the id of a peer that can be a member.
func parsePeer(addr string) (peer.AddrInfo, error) {
	info, err := netio.ParsePeer(addr)
	if err == nil {
		err = checkID(info.ID)
	}
	return info, invalid(err)
}

// Addrs are the multiaddrs that the node tells to others, each ending in /p2p/ and the
// node's id: Config.AnnounceAddrs if there are any, otherwise those that it listens on.
// A node that listens on all interfaces (/ip4/0.0.0.0) has an address for each of them.
// That of the loopback is the last.
func (n *Node) Addrs() []string {
	out := []string{}
	for _, a := range n.host.Dialable() {
		out = append(out, a.String()+"/p2p/"+n.self.id.String())
	}
	return out
}

// moved heeds that others can dial this node under other addresses than before: it
// tells the members of each namespace.
func (n *Node) moved(addrs []ma.Multiaddr) {
	n.log.Info("the node can be dialled", slog.Any("addrs", addrs))
	for _, ns := range n.Namespaces() {
		ns.announce(addrs)
	}
}

// announce tells the members where this node can be dialled. They find it out by the
// next sync with any of them.
func (ns *Namespace) announce(addrs []ma.Multiaddr) {
	if ns.enter("announce") != nil {
		return // it is closed
	}
	defer ns.gate.leave()
	if err := ns.core.Announce(ns.ctx, netio.AddrBytes(addrs)); err != nil && !errors.Is(err, ErrDenied) {
		ns.node.log.Warn("the members could not be told where this node is", logNamespace(ns), logError(err))
	}
}

// heardOf learns where a member says that it can be dialled.
func (n *Node) heardOf(id ID, raw [][]byte) error {
	addrs := netio.ParseAddrs(raw)
	if id == n.self.id || len(addrs) == 0 {
		return nil
	}
	return n.book.Learn(id, addrs)
}

// RecentSyncs returns the last syncs that ended, the latest first.
func (n *Node) RecentSyncs() []status.Sync { return n.recent.List() }

// finished lists a sync of this node's own that has met the peer.
func (n *Node) finished(r *reconcile.Report, dry bool, err error) {
	if r.WireBytesSent+r.WireBytesReceived == 0 || errors.Is(err, ErrBusy) && r.Parts == 0 || errors.Is(err, node.ErrNotHeld) {
		return
	}
	s := status.Sync{Time: n.now().UTC(), DryRun: dry, Report: *r}
	if err != nil {
		s.Error = err.Error()
	}
	n.recent.Add(s, dbadapter.NamespaceID{})
}

// ended accounts for a conversation. RecentSyncs lists one of a control namespace only
// where it has failed: otherwise that of the data follows. Of the syncs that this node
// begins it lists the conversations that were put off; finished lists the whole.
func (n *Node) ended(s status.Sync, of *side, err error) {
	n.metrics.Synced(s.Incoming, &s.Report, err)
	if err != nil {
		s.Error = err.Error()
	}
	what := "sync"
	if of.ask.Control {
		what = "sync of the members"
	}
	busy := errors.Is(err, ErrBusy)
	switch {
	case of.ask.Control && err == nil, busy && of.ask.Part():
	case of.ask.Control, busy:
		n.recent.Add(s, of.set())
	case s.Incoming:
		n.recent.Follow(s, syncing.StageOf(of.ask.Part(), &s.Report), of.by, of.set())
	}
	r := &s.Report
	n.repaired(r)
	if !of.ask.Control && !of.ask.DryRun {
		n.metrics.Differences(r.Namespace, r)
	}
	level := slog.LevelInfo
	switch {
	case errors.Is(err, ErrPaused), busy: // as a person wants it; it is tried again
	case errors.Is(err, ErrClosed), of.moved(err): // a shard is handed over, or the node ends
	case err != nil && !errors.Is(err, reconcile.ErrListsDiffer): // which is no failure
		level = slog.LevelWarn
	case r.Differences() == 0:
		level = slog.LevelDebug // most of those in the background
	}
	n.log.LogAttrs(n.ctx, level, what, slog.String("ns", r.Namespace), slog.String("peer", r.Peer), slog.Bool("incoming", s.Incoming),
		slog.String("method", r.Method.String()), slog.Int("missing_here", r.MissingHere), slog.Int("missing_there", r.MissingThere),
		slog.Int("mismatched", r.Mismatched), slog.Int("applied", r.Applied), slog.Int("sent", r.Sent), slog.Int("rejected", r.Rejected),
		slog.Float64("duration_ms", r.DurationMS), slog.Bool("verified", r.Verified), logError(err))
}

// repaired logs what a sync found where its cells did not prove themselves.
// A sum of a range that this node kept wrong is a fault of its memory or of the
// program, and so may be a sketch. A collision of checksums is chance, one changed
// record in four million, or a member's doing.
func (n *Node) repaired(r *reconcile.Report) {
	if !r.Repair.Needed() {
		return
	}
	n.log.LogAttrs(n.ctx, slog.LevelWarn, "the cells of a sync did not prove themselves", slog.String("ns", r.Namespace), slog.String("peer", r.Peer),
		slog.Int("ranges", r.Repair.Ranges), slog.Any("first", r.Listed), slog.Int("digests", r.Repair.Digests), slog.Int("collisions", r.Repair.Collisions),
		slog.Int("left", r.Repair.Left), slog.Bool("sketch", r.Repair.Sketch))
}
