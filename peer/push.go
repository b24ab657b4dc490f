package peer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pushes carries what the node's namespaces push: directly to few members, and over GossipSub otherwise. There is
// one topic a shard, whose name only members can make. What is pushed and what becomes of what arrives is decided
// in internal/push. Records are signed at rest, so that the messages are not.
type pushes struct {
	node   *Node
	host   *memberHost
	pubsub *pubsub.PubSub
	links  *links
	direct *direct

	mu     sync.Mutex // guards topics
	topics map[string]*follower
}

// follower is a shard that pushes, until over is closed.
type follower struct {
	*shard
	topic    wire.Topic
	arrivals chan *node.Arrival // that were examined, and are to be committed
	over     chan struct{}
	small    atomic.Bool // pushes go directly, as far as there are lines
}

// The mesh of a topic: each node passes a message on to two or three others that have not
// got it. Of ten nodes each gets a message some two times.
const (
	meshDegree = 3
	meshLeast  = 2
	meshMost   = push.MeshCopies
)

// pushQueue is how many messages wait at most, for a peer, for their examination or for
// their commit. Those beyond are dropped, which the next one's number tells.
const pushQueue = 64

// openPushes begins to push and to hear, for all namespaces.
func (n *Node) openPushes(_ context.Context, cfg *Config) (err error) {
	if !cfg.pushes() {
		return nil
	}
	p := &pushes{node: n, topics: map[string]*follower{}}
	p.links = &links{pushes: p, wake: make(chan struct{}, 1), rests: map[ID]*linkRest{}}
	p.direct = newDirect(p)
	if p.host, err = newMemberHost(n, p.direct.meet); err != nil {
		return err
	}
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout, params.Dlazy = meshDegree, meshLeast, meshMost, 1, 1, meshDegree
	p.pubsub, err = pubsub.NewGossipSub(n.ctx, p.host,
		pubsub.WithGossipSubProtocols([]protocol.ID{pushProtocol}, func(pubsub.GossipSubFeature, protocol.ID) bool { return true }),
		pubsub.WithGossipSubParams(params),
		pubsub.WithFloodPublish(false),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithMessageIdFn(pushID),
		pubsub.WithMaxMessageSize(2*wire.MaxPush),
		pubsub.WithPeerOutboundQueueSize(pushQueue),
		pubsub.WithValidateQueueSize(pushQueue),
		pubsub.WithPeerFilter(p.serves),
		pubsub.WithSubscriptionFilter(&topicFilter{pushes: p, strange: map[string]struct{}{}, from: map[ID]int{}}),
	)
	n.onClose(p.close)
	if err != nil {
		return err
	}
	p.host.SetStreamHandler(directProtocol, p.direct.receive)
	go p.host.forward()
	n.mu.Lock()
	n.pushes = p
	n.mu.Unlock()
	for _, ns := range n.Namespaces() {
		for _, sh := range ns.shards() {
			p.start(sh)
		}
	}
	n.soon(p.links.keep)
	return nil
}

// close ends what the node's end leaves: the streams with peers.
func (p *pushes) close() error {
	p.host.RemoveStreamHandler(pushProtocol)
	p.host.RemoveStreamHandler(directProtocol)
	p.host.membersChanged(func(ID) bool { return true })
	return p.host.close()
}

// pushID names a message to GossipSub. The topic's name keys it.
func pushID(m *pb.Message) string {
	h := sha256.New()
	h.Write([]byte(m.GetTopic()))
	h.Write(m.GetData())
	return string(h.Sum(nil)[:16])
}

// renewPushes makes GossipSub see a peer that has been paused or resumed as it is now.
func (n *Node) renewPushes(id ID) {
	n.mu.RLock()
	p := n.pushes
	n.mu.RUnlock()
	if p != nil {
		p.host.membersChanged(func(other ID) bool { return other == id })
		p.direct.changed()
	}
}

// topicSize is the length of a topic's name.
const topicSize = 32

// topicOf is the name of a set's topic.
func topicOf(set *node.Set) string { return hex.EncodeToString(set.Keys.Topic[:]) }

// serves reports whether a topic is for a peer.
func (p *pushes) serves(id ID, topic string) bool {
	p.mu.Lock()
	f := p.topics[topic]
	p.mu.Unlock()
	return f != nil && f.serves(id)
}

// renew gives the members to which the shard pushes, and when the first of their roles
// ends.
func (f *follower) renew() (audience map[node.ID]bool, until time.Time) {
	audience, until = f.set.Audience()
	f.small.Store(len(audience) <= wire.MaxDirect)
	return audience, until
}

// serves reports whether a shard's pushes are for a peer, and the peer's for it.
func (f *follower) serves(id ID) bool {
	return f.set.Namespace().Admits(node.ID(id)) && f.set.Namespace().PausedWith(node.ID(id)) == nil
}

// follower is the shard of a topic, or nil.
func (p *pushes) follower(topic wire.Topic) *follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.topics[hex.EncodeToString(topic[:])]
}

// small are the shards whose pushes go directly, by their topics.
func (p *pushes) small() map[wire.Topic]*follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[wire.Topic]*follower{}
	for _, f := range p.topics {
		if f.small.Load() {
			all[f.topic] = f
		}
	}
	return all
}

// start begins to push and to hear in a shard, until it closes.
func (p *pushes) start(sh *shard) {
	if !sh.ns.gate.enter() {
		return
	}
	go func() {
		defer sh.ns.gate.leave()
		name := topicOf(sh.set)
		f, leave := p.take(sh, name)
		if f == nil {
			return
		}
		defer leave()
		if err := p.follow(f, name); err != nil && sh.ctx.Err() == nil {
			p.node.log.Error("nothing is pushed, and syncs at intervals go on", logNamespace(sh.ns), logError(err))
		}
	}()
}

// take makes a topic a shard's, once the one that was dropped, and is here again now, has
// left it. There is no follower where the shard has closed.
func (p *pushes) take(sh *shard, name string) (f *follower, leave func()) {
	f = &follower{shard: sh, topic: sh.set.Keys.Topic, arrivals: make(chan *node.Arrival, pushQueue), over: make(chan struct{})}
	f.renew()
	for {
		p.mu.Lock()
		before := p.topics[name]
		if before == nil {
			p.topics[name] = f
		}
		p.mu.Unlock()
		if before == nil {
			p.direct.changed()
			return f, func() {
				p.mu.Lock()
				delete(p.topics, name)
				p.mu.Unlock()
				close(f.over)
				p.direct.changed()
			}
		}
		select {
		case <-before.over:
		case <-sh.ctx.Done():
			return nil, nil
		}
	}
}

// follow carries the pushes of a shard.
func (p *pushes) follow(f *follower, name string) error {
	if err := p.pubsub.RegisterTopicValidator(name, func(_ context.Context, from ID, m *pubsub.Message) pubsub.ValidationResult {
		return p.examine(f.shard, from, m)
	}); err != nil {
		return err
	}
	defer func() { _ = p.pubsub.UnregisterTopicValidator(name) }() // it fails when the node closes
	topic, err := p.pubsub.Join(name)
	if err != nil {
		return err
	}
	defer func() { _ = topic.Close() }() // as above
	heard, err := topic.Subscribe(pubsub.WithBufferSize(pushQueue))
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer heard.Cancel()
	running.Go(func() {
		for {
			m, err := heard.Next(f.ctx)
			if err != nil {
				return // the shard closes
			}
			a, ok := m.ValidatorData.(*node.Arrival)
			if !ok {
				continue // of this node itself
			}
			select {
			case f.arrivals <- a:
			case <-f.ctx.Done():
				return
			}
		}
	})
	running.Go(func() { p.commit(f) })
	p.send(f, topic, &running)
	return nil
}

// examine is GossipSub's validator.
func (p *pushes) examine(sh *shard, from ID, m *pubsub.Message) pubsub.ValidationResult {
	if from == p.node.self.id {
		return pubsub.ValidationAccept
	}
	a, verdict, err := sh.set.Arrived(node.ID(from), m.GetData())
	p.node.pushArrived(sh.ns, from, verdict, err)
	switch verdict {
	case node.PushTaken:
		m.ValidatorData = a
		return pubsub.ValidationAccept
	case node.PushRefused:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// commit commits what has come: all that waits, together.
func (p *pushes) commit(f *follower) {
	for {
		var all []*node.Arrival
		select {
		case a := <-f.arrivals:
			all = append(all, a)
		case <-f.ctx.Done():
			return
		}
		for more := true; more && len(all) < pushQueue; {
			select {
			case a := <-f.arrivals:
				all = append(all, a)
			default:
				more = false
			}
		}
		if err := f.set.CommitArrivals(f.ctx, all); err != nil && f.ctx.Err() == nil {
			p.node.log.Warn("what was pushed could not be committed; syncs bring it", logNamespace(f.ns), logError(err))
		}
	}
}

// send publishes what the shard has to push, and begins the syncs that pushes bring about,
// until the shard closes.
func (p *pushes) send(f *follower, topic *pubsub.Topic, running *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	members, audiences := f.ns.core.Members(), f.ns.core.Audiences()
	audience, until := f.renew()
	p.host.membersChanged(func(ID) bool { return false })
	p.links.opened(f.ctx, f.set)
	carrier := &pushCarrier{p, f, topic, running}
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.pushable:
		case <-timer.C:
		}
		if now, held := f.ns.core.Members(), f.ns.core.Audiences(); now != members || held != audiences || !until.IsZero() && p.node.now().After(until) {
			before := audience
			audience, until = f.renew()
			p.host.membersChanged(func(id ID) bool { return before[node.ID(id)] && !audience[node.ID(id)] })
			p.direct.changed()
			members, audiences = now, held
		}
		wait := f.set.Pushes().Step(audience, carrier)
		if !until.IsZero() { // GossipSub asks serves for new peers only
			if ends := max(until.Sub(p.node.now()), 0) + time.Millisecond; wait == 0 || ends < wait {
				wait = ends
			}
		}
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// pushCarrier is the network of a shard's pushes.
type pushCarrier struct {
	*pushes
	shard   *follower
	topic   *pubsub.Topic
	running *sync.WaitGroup // syncs that pushes have brought about
}

func (c *pushCarrier) Lines() *push.Lines { return c.direct.reached(c.shard, c.topic) }

func (c *pushCarrier) Send(m *push.Push, to []node.ID, whole bool) {
	f := c.shard
	c.direct.push(f.topic, m, to)
	if !whole {
		if err := c.topic.Publish(f.ctx, m.Bytes()); err != nil && f.ctx.Err() == nil {
			c.node.log.Warn("a push was not sent over the mesh; syncs bring it", logNamespace(f.ns), logError(err))
		}
	}
	c.node.metrics.pushes.WithLabelValues("sent").Inc()
}

func (c *pushCarrier) Sync(with, or node.ID, done func(by node.ID, err error)) {
	f := c.shard
	c.running.Go(func() {
		if !c.node.host.Connected(ID(with)) && c.node.host.Connected(ID(or)) {
			with = or
		}
		_, err := f.sync(f.ctx, ID(with), SyncOptions{})
		done(with, err)
	})
}

// peerPushes reports whether a peer's host says that it speaks the protocol of pushes.
func (n *Node) peerPushes(id node.ID) bool {
	spoken, err := n.host.Peerstore().SupportsProtocols(ID(id), pushProtocol)
	return err == nil && len(spoken) > 0
}
