package mesh

import (
	"fmt"
	"sync"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
)

// topicFilter bounds the topics that GossipSub remembers: each peer names all of its own,
// and GossipSub never forgets a topic. Those of this node's namespaces pass. Others are
// kept as well, since this node may join one of them while the stream stays.
type topicFilter struct {
	own func(topic string) bool

	mu      sync.Mutex // guards what follows
	strange map[string]struct{}
	from    map[peer.ID]int // how many of them each peer was the first to name
}

// The bounds of topics that are not this node's, some 100 bytes each. Of a namespace that
// is beyond them, and that this node joins later, it hears pushes once the stream was
// opened anew.
const (
	maxStrangeTopics        = 1 << 14
	maxStrangeTopicsPerPeer = 256
)

// maxSubscriptions is how many subscriptions one message may hold, at most. GossipSub
// names all topics of a node in one.
const maxSubscriptions = 1 << 12

var _ pubsub.SubscriptionFilter = (*topicFilter)(nil)

// CanSubscribe implements pubsub.SubscriptionFilter: of this node's own topics.
func (f *topicFilter) CanSubscribe(string) bool { return true }

// FilterIncomingSubscriptions implements pubsub.SubscriptionFilter.
func (f *topicFilter) FilterIncomingSubscriptions(from peer.ID, subs []*pb.RPC_SubOpts) ([]*pb.RPC_SubOpts, error) {
	if len(subs) > maxSubscriptions {
		return nil, fmt.Errorf("%w: %d subscriptions in a message", dbadapter.ErrLimit, len(subs))
	}
	return pubsub.FilterSubscriptions(subs, func(topic string) bool { return f.own(topic) || f.admit(from, topic) }), nil
}

// admit reports whether a topic that is not this node's is kept.
func (f *topicFilter) admit(from peer.ID, topic string) bool {
	if len(topic) != topicSize {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.strange[topic]; known {
		return true
	}
	if len(f.strange) >= maxStrangeTopics || f.from[from] >= maxStrangeTopicsPerPeer {
		return false
	}
	f.strange[topic] = struct{}{}
	f.from[from]++
	return true
}
