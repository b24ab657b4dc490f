package mesh

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// line carries pushes to one member. What waits for a slow one is bounded. Where more was
// to be sent, the member learns so, once for each namespace. Namespaces take turns, so
// that one that pushes much holds up no other for longer than a write.
type line struct {
	id    peer.ID
	again chan struct{} // holds a token once there is a reason to open it soon
	wake  chan struct{} // holds a token once there is something to send

	mu     sync.Mutex // guards what follows
	ready  bool       // the member has said what it takes
	topics map[wire.Topic][]node.ID
	queues map[wire.Topic]*lineQueue // none is empty
	turns  []wire.Topic              // of the queues, in the order in which they are written
	count  int                       // of the pushes in all queues
	bytes  int                       // of these
}

// lineQueue is what waits of one namespace.
type lineQueue struct {
	pushes []queued
	bytes  int
	// behind is the word that there is more, once a push has found no room: it goes behind
	// those that wait.
	behind *push.Push
}

// queued is a push that waits.
type queued struct {
	push *push.Push
	data []byte
}

const (
	// lineBytes wait for a member at most. A second of what a namespace pushes at its
	// bound takes 4 MiB, and a sync brings what waits for longer as fast.
	lineBytes = 1 << 20
	// lineTopics is how many topics a member takes at most, as maxSubscriptions.
	lineTopics = maxSubscriptions
	// lineWrite is how many bytes are written at once, but for what is larger itself.
	lineWrite = 64 << 10
)

func newLine(id peer.ID) *line {
	return &line{
		id: id, again: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		topics: map[wire.Topic][]node.ID{}, queues: map[wire.Topic]*lineQueue{},
	}
}

// hear notes what the member takes. anew: it did not take the topic before. ok is false if
// it takes too much.
func (l *line) hear(t *wire.Takes) (anew, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch t.Kind {
	case wire.TakesReady:
		l.ready = true
	case wire.TakesNoMore:
		delete(l.topics, t.Topic)
	case wire.TakesTopic:
		links := make([]node.ID, len(t.Links))
		for i, id := range t.Links {
			links[i] = node.ID(id)
		}
		_, before := l.topics[t.Topic]
		l.topics[t.Topic], anew = links, !before
	}
	return anew, len(l.topics) <= lineTopics
}

// deaf notes that the stream has ended.
func (l *line) deaf() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.count, l.bytes, l.turns = false, 0, 0, nil
	clear(l.topics)
	clear(l.queues)
}

// takes reports whether the member takes the pushes of a topic, and which lines it has
// itself. ready is whether it has said so.
func (l *line) takes(topic wire.Topic) (links []node.ID, takes, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	links, takes = l.topics[topic]
	return links, takes, l.ready
}

// add queues a push, or that there is more. Where there is no room, the namespace of which
// most waits gives up its last push.
func (l *line) add(topic wire.Topic, m *push.Push, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, takes := l.topics[topic]; !takes {
		return // since it was asked; the next push's number shows it
	}
	q := l.queues[topic]
	if q == nil {
		q = &lineQueue{}
		l.queues[topic] = q
		l.turns = append(l.turns, topic)
	}
	if q.behind != nil {
		q.behind = m.More()
		return
	}
	q.pushes = append(q.pushes, queued{m, data})
	q.bytes += len(data)
	l.count, l.bytes = l.count+1, l.bytes+len(data)
	for l.count > pushQueue || l.bytes > lineBytes {
		l.shorten()
	}
	machine.Wake(l.wake)
}

// queued is how many bytes of the topic's pushes wait.
func (l *line) queued(topic wire.Topic) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[topic]; q != nil {
		return q.bytes
	}
	return 0
}

// shorten drops the last push of the namespace of which most waits. Most is by bytes
// or, where there are too many pushes, by their number. mu is held.
func (l *line) shorten() {
	var longest *lineQueue
	for _, topic := range l.turns { // the first of equal ones: not a map's order
		switch q := l.queues[topic]; {
		case longest == nil,
			l.bytes > lineBytes && q.bytes > longest.bytes,
			l.bytes <= lineBytes && len(q.pushes) > len(longest.pushes):
			longest = q
		}
	}
	last := longest.pushes[len(longest.pushes)-1]
	longest.pushes = longest.pushes[:len(longest.pushes)-1]
	longest.bytes -= len(last.data)
	l.count, l.bytes = l.count-1, l.bytes-len(last.data)
	if longest.behind == nil {
		longest.behind = last.push.More()
	}
}

// next takes from the queues what is written next, a push of each in turn. Behind the
// last one of a namespace it says that there is more, if there is. last is the topic that
// was written last, and is changed.
func (l *line) next(last *wire.Topic) (b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.turns) > 0 {
		topic := l.turns[0]
		q := l.queues[topic]
		var data []byte
		if len(q.pushes) > 0 {
			data = q.pushes[0].data
		} else {
			data = q.behind.Direct()
		}
		if len(b) > 0 && len(b)+len(data) > lineWrite {
			break
		}
		if topic != *last {
			b, *last = wire.AppendTopic(b, topic), topic
		}
		b = wire.AppendDirect(b, data)
		l.turns = l.turns[1:]
		if len(q.pushes) > 0 {
			q.pushes[0] = queued{} // for the collector
			q.pushes = q.pushes[1:]
			q.bytes -= len(data)
			l.count, l.bytes = l.count-1, l.bytes-len(data)
		} else {
			q.behind = nil
		}
		if len(q.pushes) > 0 || q.behind != nil {
			l.turns = append(l.turns, topic)
		} else {
			delete(l.queues, topic)
		}
	}
	return b
}

// write sends what is queued over a stream, until the context is over.
func (l *line) write(ctx context.Context, s network.Stream, idle time.Duration) {
	var last wire.Topic // no topic that there is
	for {
		for b := l.next(&last); len(b) > 0; b = l.next(&last) {
			_ = s.SetWriteDeadline(time.Now().Add(idle)) // without it Write only fails later
			if _, err := s.Write(b); err != nil {
				s.Reset() // the next push's number shows it
				return
			}
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
	}
}
