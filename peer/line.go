package peer

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// line carries pushes to one member. What waits for a slow one is bounded; of what is
// beyond the member is told, once for each namespace, that there is more.
type line struct {
	id    ID
	again chan struct{} // holds a token once there is a reason to open it soon
	wake  chan struct{} // holds a token once there is something to send

	mu     sync.Mutex // guards what follows
	ready  bool       // the member has said what it takes
	topics map[wire.Topic][]node.ID
	queue  []queued
	bytes  int // of the queue
	// behind are the last pushes of the namespaces in which one found no room.
	behind map[wire.Topic]*node.Push
}

// queued is a push that waits.
type queued struct {
	topic wire.Topic
	data  []byte
}

const (
	// lineBytes wait for a member at most: a second of what a namespace pushes at its
	// bound takes 4 MiB, and a sync brings what waits for longer as fast.
	lineBytes = 1 << 20
	// lineTopics is how many topics a member takes at most, as maxSubscriptions.
	lineTopics = maxSubscriptions
	// lineWrite is how many bytes are written at once, but for what is larger itself.
	lineWrite = 64 << 10
)

func newLine(id ID) *line {
	return &line{
		id: id, again: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		topics: map[wire.Topic][]node.ID{}, behind: map[wire.Topic]*node.Push{},
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

// deaf notes that the stream has ended. ready says whether the member is known to take
// nothing, rather than not known to take anything.
func (l *line) deaf(ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.bytes, l.queue = ready, 0, nil
	clear(l.topics)
	clear(l.behind)
}

// takes reports whether the member takes the pushes of a topic, and which lines it has
// itself; ready, whether it has said so.
func (l *line) takes(topic wire.Topic) (links []node.ID, takes, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	links, takes = l.topics[topic]
	return links, takes, l.ready
}

// add queues a push, or that there is more.
func (l *line) add(topic wire.Topic, push *node.Push, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, takes := l.topics[topic]; !takes {
		return // since it was asked; the next push's number tells
	}
	if _, is := l.behind[topic]; is || len(l.queue) >= pushQueue || l.bytes+len(data) > lineBytes {
		l.behind[topic] = push
	} else {
		l.queue = append(l.queue, queued{topic, data})
		l.bytes += len(data)
	}
	wake(l.wake)
}

// next takes from the queue what is written next. Once that is empty, it is that there is
// more. last is the topic that was written last, and is changed.
func (l *line) next(last *wire.Topic) (b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	write := func(topic wire.Topic, data []byte) {
		if topic != *last {
			b, *last = wire.AppendTopic(b, topic), topic
		}
		b = wire.AppendDirect(b, data)
	}
	n := 0
	for n < len(l.queue) && (n == 0 || len(b)+len(l.queue[n].data) <= lineWrite) {
		write(l.queue[n].topic, l.queue[n].data)
		l.bytes -= len(l.queue[n].data)
		n++
	}
	l.queue = append([]queued(nil), l.queue[n:]...)
	if n == 0 {
		for topic, push := range l.behind {
			write(topic, push.More().Direct())
		}
		clear(l.behind)
	}
	return b
}

// write sends what is queued over a stream, until over is closed.
func (l *line) write(s network.Stream, idle time.Duration, over chan struct{}) {
	var last wire.Topic // no topic that there is
	for {
		for b := l.next(&last); len(b) > 0; b = l.next(&last) {
			_ = s.SetWriteDeadline(time.Now().Add(idle)) // without it Write only fails later
			if _, err := s.Write(b); err != nil {
				s.Reset() // the next push's number tells
				return
			}
		}
		select {
		case <-l.wake:
		case <-over:
			return
		}
	}
}
