package peer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/routing"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// openRoute opens a stream for routed questions to a peer.
func (n *Node) openRoute(ctx context.Context, id ID) (*stream.Carrier, error) {
	if !n.host.Connected(id) {
		if err := n.host.Dial(ctx, id, nil); err != nil {
			return nil, err
		}
	}
	s, err := n.host.Open(ctx, id, routing.Protocol)
	if err != nil {
		return nil, err
	}
	return n.routeCarrier(s), nil
}

func (n *Node) routeCarrier(s network.Stream) *stream.Carrier {
	o := n.carrying()
	o.Buffer = routing.Buffer
	return stream.New(s, o)
}

// serveRoute answers the routed questions of a peer, one after the other.
func (n *Node) serveRoute(s network.Stream) {
	remote := s.Conn().RemotePeer()
	log := n.log.With(n.logCaller(remote))
	talk := n.routeCarrier(s)
	if !n.isMember(remote) {
		log.Info("a routed question was denied: not a member")
		n.refuse(talk, "route", ErrDenied)
		return
	}
	asked, err := n.routing.Serve(talk, remote, func(question *wire.Ask) ([]byte, error) {
		frame, err := n.answerRouted(remote, question)
		n.metrics.Asked(question, err)
		return frame, err
	})
	if err == nil {
		return
	}
	log.Debug("a routed question was not answered", logError(err))
	if !asked {
		n.metrics.Refused("route", err)
	}
}

func (n *Node) answerRouted(remote ID, question *wire.Ask) ([]byte, error) {
	routed, err := n.core.Routed(node.ID(remote), question)
	if err != nil {
		return nil, err
	}
	defer routed.Done()
	ns := n.namespaceByID(routed.NS.ID())
	if ns == nil || ns.hosts == nil || !ns.gate.enter() { // it is not cut into shards, or is being dropped
		return nil, ErrDenied
	}
	defer ns.gate.leave()
	reply, err := shards.Reply(ns.ctx, routed)
	if err != nil {
		return nil, err
	}
	frame := wire.Append(nil, reply)
	n.core.Questions.Charge(node.ID(remote), len(frame))
	return frame, nil
}

// openShards opens the way to the hosts of a namespace that is cut into shards, and its locator.
func (ns *Namespace) openShards() error {
	n := ns.node
	ns.hosts = &shards.Shards{NS: ns.core, Random: rand.Int64N, Paging: n.routing.Page, Net: routing.NewNet(routing.Config{
		Routes: n.routing, NS: ns.core, Life: ns.ctx, Elapsed: n.awake.Elapsed,
		Enter:     func() (leave func(), ok bool) { return ns.gate.leave, ns.gate.enter() },
		Connected: func(id node.ID) bool { return n.host.Connected(ID(id)) },
		SyncLists: func(ctx context.Context, with node.ID) error {
			_, err := ns.sync(ctx, nil, ID(with), SyncOptions{})
			return err
		},
		Feed: func(set *node.Set) *changes.Feed {
			if sh := n.shard(set); sh != nil {
				return sh.feed
			}
			return nil
		},
		Routed:  func(q wire.Question) { n.metrics.Routed(q) },
		Refused: func() { n.metrics.RouteRefused() },
	})}
	if !ns.core.Located() {
		return nil
	}
	log := n.log.With(logNamespace(ns))
	var disk locator.Disk = &locator.Memory{}
	if n.dir != "" {
		disk = durable.Folder(folder.Path(n.dir, ns.id))
	}
	err := ns.hosts.OpenLocator(disk, rand.Uint64(), func(host node.ID, err error) {
		if ns.ctx.Err() == nil {
			log.Debug("which keys there are is not heard at this host for a while", logPeer(ID(host)), logError(err))
		}
	})
	if err != nil {
		return err
	}
	if damaged := ns.hosts.Locator.Index.Stats().Damaged; damaged > 0 {
		log.Warn("copies of the locator are damaged, or could not be read: they are fetched anew", slog.Int("copies", damaged))
	}
	return nil
}

// followShards does in the background what asks hosts: it follows where keys are, and collects large values that
// nothing names. The node has its host by then.
func (ns *Namespace) followShards() {
	if ns.hosts == nil {
		return
	}
	if ns.core.Bodied() && ns.node.core.Interval > 0 {
		ns.hosts.Net.Go(ns.ctx, ns.collectBodies)
	}
	if ns.core.Located() {
		ns.hosts.Net.Go(ns.ctx, func(ctx context.Context) {
			ns.hosts.Follow(ctx, func(err error) {
				ns.node.log.Warn("copies of the locator could not be read or written: they are fetched anew, and written again", logNamespace(ns), logError(err))
			})
		})
	}
}

// closeShards makes durable what the locator knows, for the next start.
func (ns *Namespace) closeShards() {
	if ns.hosts == nil || ns.hosts.Locator == nil {
		return
	}
	if err := ns.hosts.Locator.Index.Save(); err != nil {
		ns.node.log.Warn("the locator could not be saved: the next start fetches it anew", logNamespace(ns), logError(err))
	}
}

// WhereBody asks the hosts of a key's value what they have of it. It is nil where the value is in its record,
// or the key holds nothing. ErrTooFew: the record cannot be read at quorum.
func (ns *Namespace) WhereBody(ctx context.Context, key []byte) (body *status.Body, err error) {
	err = ns.within(ctx, fmt.Sprintf("hosts of the value of %q in", clip(key)), func(ctx context.Context) (err error) {
		if ns.core.Rule() != nil && ns.core.Bodied() {
			body, err = ns.hosts.WhereBody(ctx, key)
		}
		return ns.orRemoved(err)
	})
	return body, err
}

// Reindex hands the records that this node was told as a host of large values to the hosts of their keys, by
// placement writer, and counts them. It is for when the hosts of keys have lost their data for good: call it at each node then.
// What the key's hosts hold that is later stays. ErrInvalid: the placement is another one. ErrUnconfirmed: no
// majority has taken some record; the others are handed on.
func (ns *Namespace) Reindex(ctx context.Context) (handed int, err error) {
	err = ns.within(ctx, "reindex", func(ctx context.Context) (err error) {
		if ns.core.Rule() == nil {
			return fmt.Errorf("%w: it is not cut into shards", ErrInvalid)
		}
		handed, err = ns.hosts.Reindex(ctx)
		return ns.orRemoved(err)
	})
	return handed, err
}
