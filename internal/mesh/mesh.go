package mesh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Config is what the node hands in.
type Config struct {
	Host      *netio.Network
	Members   netio.Members
	Book      *netio.Book
	Bandwidth *stream.Bandwidth
	Log       *slog.Logger
	Now       func() time.Time
	// Interval is that of background syncs: the longest pause between two dials of a member.
	Interval time.Duration
	// DialTimeout bounds the opening of a stream, and IdleTimeout each write.
	DialTimeout, IdleTimeout time.Duration
	// Connections is the high-water mark of the host's connections.
	Connections int
	// Enter reports whether the node is open. If so, it does not close before leave.
	Enter func() (leave func(), ok bool)
	// Pushed counts a push: "sent", "received", "ignored" (left to syncs) or "refused".
	Pushed func(what string)
}

// Source is a set whose records are pushed.
type Source struct {
	Set *node.Set
	// Pushable gives a token when there may be something to push.
	Pushable <-chan struct{}
	// Enter reports whether the set is open. If so, it does not close before leave.
	Enter func() (leave func(), ok bool)
	// Sync syncs the set with a peer.
	Sync func(ctx context.Context, with peer.ID) error
}

// Mesh pushes what a node writes, and hears what others push. There is one topic a set,
// whose name only members can make. Records are signed at rest, so that the messages are not.
type Mesh struct {
	cfg    Config
	ctx    context.Context
	host   *memberHost
	pubsub *pubsub.PubSub
	links  *links
	direct *direct

	mu     sync.Mutex // guards topics
	topics map[string]*follower
}

// follower is a set that pushes, until over is closed.
type follower struct {
	Source
	ctx      context.Context
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
// their commit. Those beyond are dropped, which the next one's number shows.
const pushQueue = 64

// Open begins to push and to hear, until the context is over. Close must follow then.
func Open(ctx context.Context, cfg Config) (m *Mesh, err error) {
	m = &Mesh{cfg: cfg, ctx: ctx, topics: map[string]*follower{}}
	m.links = &links{mesh: m, wake: make(chan struct{}, 1), rests: map[peer.ID]*linkRest{}}
	m.direct = newDirect(m)
	if m.host, err = newMemberHost(m); err != nil {
		return nil, err
	}
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout, params.Dlazy = meshDegree, meshLeast, meshMost, 1, 1, meshDegree
	m.pubsub, err = pubsub.NewGossipSub(ctx, m.host,
		pubsub.WithGossipSubProtocols([]protocol.ID{pushProtocol}, func(pubsub.GossipSubFeature, protocol.ID) bool { return true }),
		pubsub.WithGossipSubParams(params),
		pubsub.WithFloodPublish(false),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithMessageIdFn(pushID),
		pubsub.WithMaxMessageSize(2*wire.MaxPush),
		pubsub.WithPeerOutboundQueueSize(pushQueue),
		pubsub.WithValidateQueueSize(pushQueue),
		pubsub.WithPeerFilter(m.serves),
		pubsub.WithSubscriptionFilter(&topicFilter{own: func(topic string) bool { return m.follower(topic) != nil }, strange: map[string]struct{}{}, from: map[peer.ID]int{}}),
	)
	if err != nil {
		m.Close()
		return nil, err
	}
	m.host.SetStreamHandler(DirectProtocol, m.direct.receive)
	go m.host.forward()
	m.soon(m.links.keep)
	return m, nil
}

// Close ends the streams with peers. The context is over, and all that has entered has left.
func (m *Mesh) Close() error {
	m.host.RemoveStreamHandler(pushProtocol)
	m.host.RemoveStreamHandler(DirectProtocol)
	m.host.membersChanged(func(peer.ID) bool { return true })
	return m.host.close()
}

// soon runs fn in a goroutine of its own, unless the node is closing.
func (m *Mesh) soon(fn func()) {
	if leave, ok := m.cfg.Enter(); ok {
		go func() {
			defer leave()
			fn()
		}()
	}
}

// pushID names a message to GossipSub. The topic's name keys it.
func pushID(m *pb.Message) string {
	h := sha256.New()
	h.Write([]byte(m.GetTopic()))
	h.Write(m.GetData())
	return string(h.Sum(nil)[:16])
}

// Renew makes GossipSub see a peer that has been paused or resumed as it is now.
func (m *Mesh) Renew(id peer.ID) {
	m.host.membersChanged(func(other peer.ID) bool { return other == id })
	m.direct.changed()
}

// Lines are the members to which a set that is followed is pushed directly, and those to
// which it will be; nil: it is not followed.
func (m *Mesh) Lines(set *node.Set) *push.Lines {
	f := m.follower(topicOf(set.Keys.Topic))
	if f == nil {
		return nil
	}
	return m.direct.reached(f.topic, func() []peer.ID { return m.pubsub.ListPeers(topicOf(f.topic)) })
}

// Queued is how many bytes of a set's pushes wait in the lines of members.
func (m *Mesh) Queued(set *node.Set) (bytes int) {
	m.direct.mu.Lock()
	defer m.direct.mu.Unlock()
	for _, l := range m.direct.lines {
		bytes += l.queued(set.Keys.Topic)
	}
	return bytes
}

// Pushes reports whether a peer's host says that it speaks the protocol of pushes.
func Pushes(h *netio.Network, id peer.ID) bool {
	spoken, err := h.Peerstore().SupportsProtocols(id, pushProtocol)
	return err == nil && len(spoken) > 0
}

// topicSize is the length of a topic's name.
const topicSize = 32

// topicOf is the name of a topic.
func topicOf(topic wire.Topic) string { return hex.EncodeToString(topic[:]) }

// serves reports whether a topic is for a peer.
func (m *Mesh) serves(id peer.ID, topic string) bool {
	f := m.follower(topic)
	return f != nil && f.serves(id)
}

// renew gives the members to which the set pushes, and when the first of their roles
// ends.
func (f *follower) renew() (audience map[node.ID]bool, until time.Time) {
	audience, until = f.Set.Audience()
	f.small.Store(len(audience) <= wire.MaxDirect)
	return audience, until
}

// serves reports whether the set's pushes are for a peer, and the peer's for it.
func (f *follower) serves(id peer.ID) bool {
	return f.Set.Namespace().Admits(node.ID(id)) && f.Set.Namespace().PausedWith(node.ID(id)) == nil
}

// follower is that of the topic of a name, or nil.
func (m *Mesh) follower(name string) *follower {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.topics[name]
}

// followers are all.
func (m *Mesh) followers() []*follower {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.topics))
}

// Follow pushes and hears in a set, until the context is over. If another call follows the
// set, which was dropped and is here again, it waits for the end of that.
func (m *Mesh) Follow(ctx context.Context, s Source) error {
	f := &follower{Source: s, ctx: ctx, topic: s.Set.Keys.Topic, arrivals: make(chan *node.Arrival, pushQueue), over: make(chan struct{})}
	f.renew()
	leave, ok := m.take(f)
	if !ok {
		return nil
	}
	defer leave()
	err := m.follow(f)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// take makes a topic a follower's, once the one before has left it. It is not ok where the
// follower's context ends first.
func (m *Mesh) take(f *follower) (leave func(), ok bool) {
	name := topicOf(f.topic)
	for {
		m.mu.Lock()
		before := m.topics[name]
		if before == nil {
			m.topics[name] = f
		}
		m.mu.Unlock()
		if before == nil {
			m.direct.changed()
			return func() {
				m.mu.Lock()
				delete(m.topics, name)
				m.mu.Unlock()
				close(f.over)
				m.direct.changed()
			}, true
		}
		select {
		case <-before.over:
		case <-f.ctx.Done():
			return nil, false
		}
	}
}

// follow carries the pushes of a set.
func (m *Mesh) follow(f *follower) error {
	name := topicOf(f.topic)
	if err := m.pubsub.RegisterTopicValidator(name, func(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
		return m.examine(f, from, msg)
	}); err != nil {
		return err
	}
	defer func() { _ = m.pubsub.UnregisterTopicValidator(name) }() // it fails when the node closes
	topic, err := m.pubsub.Join(name)
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
			msg, err := heard.Next(f.ctx)
			if err != nil {
				return // the set closes
			}
			a, ok := msg.ValidatorData.(*node.Arrival)
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
	running.Go(func() { m.commit(f) })
	m.send(f, topic, &running)
	return nil
}

// examine is GossipSub's validator.
func (m *Mesh) examine(f *follower, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	if from == m.host.ID() {
		return pubsub.ValidationAccept
	}
	a, verdict, err := f.Set.Arrived(node.ID(from), msg.GetData(), false)
	m.count(f, from, verdict, err)
	switch verdict {
	case push.Taken:
		msg.ValidatorData = a
		return pubsub.ValidationAccept
	case push.Refused:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// commit commits what has arrived: all that waits, together.
func (m *Mesh) commit(f *follower) {
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
		if err := f.Set.CommitArrivals(f.ctx, all); err != nil && f.ctx.Err() == nil {
			m.cfg.Log.Warn("what was pushed could not be committed; syncs bring it", f.logName(), slog.Any("error", err))
		}
	}
}

// send publishes what the set has to push, and begins the syncs that pushes bring about,
// until the set closes.
func (m *Mesh) send(f *follower, topic *pubsub.Topic, running *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	members, audiences := f.Set.Namespace().Members(), f.Set.Namespace().Audiences()
	audience, until := f.renew()
	m.host.membersChanged(func(peer.ID) bool { return false })
	m.links.opened(f.ctx, f.Set)
	carrier := &carrier{m, f, topic, running}
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.Pushable:
		case <-timer.C:
		}
		if now, held := f.Set.Namespace().Members(), f.Set.Namespace().Audiences(); now != members || held != audiences || !until.IsZero() && m.cfg.Now().After(until) {
			before := audience
			audience, until = f.renew()
			m.host.membersChanged(func(id peer.ID) bool { return before[node.ID(id)] && !audience[node.ID(id)] })
			m.direct.changed()
			members, audiences = now, held
		}
		wait := f.Set.Pushes().Step(audience, carrier)
		if !until.IsZero() { // GossipSub asks serves for new peers only
			if ends := max(until.Sub(m.cfg.Now()), 0) + time.Millisecond; wait == 0 || ends < wait {
				wait = ends
			}
		}
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// carrier is the network of a set's pushes.
type carrier struct {
	*Mesh
	set     *follower
	topic   *pubsub.Topic
	running *sync.WaitGroup // syncs that pushes have brought about
}

// Lines implements push.Network.
func (c *carrier) Lines() *push.Lines { return c.direct.reached(c.set.topic, c.topic.ListPeers) }

// Send implements push.Network.
func (c *carrier) Send(m *push.Push, to []node.ID, whole bool) {
	f := c.set
	c.direct.push(f.topic, m, to)
	if !whole {
		if err := c.topic.Publish(f.ctx, m.Bytes()); err != nil && f.ctx.Err() == nil {
			c.cfg.Log.Warn("a push was not sent over the mesh; syncs bring it", f.logName(), slog.Any("error", err))
		}
	}
	c.cfg.Pushed("sent")
}

// Sync implements push.Network. It syncs with the other peer if only that is connected.
func (c *carrier) Sync(with, or node.ID, done func(by node.ID, err error)) {
	c.running.Go(func() {
		if !c.cfg.Host.Connected(peer.ID(with)) && c.cfg.Host.Connected(peer.ID(or)) {
			with = or
		}
		done(with, c.set.Sync(c.set.ctx, peer.ID(with)))
	})
}

// logName is the attribute of a set's namespace.
func (f *follower) logName() slog.Attr {
	return slog.String("ns", f.Set.Namespace().Members().Name())
}

// count counts a push that has arrived.
func (m *Mesh) count(f *follower, from peer.ID, verdict push.Verdict, err error) {
	what := "ignored"
	switch verdict {
	case push.Taken:
		what = "received"
	case push.Refused:
		what = "refused"
		m.cfg.Log.With(slog.Any("peer", from)).Info("a push was refused", f.logName(), slog.Any("error", err))
	}
	m.cfg.Pushed(what)
}
