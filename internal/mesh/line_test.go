package mesh

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// sink is a stream that takes what is written at once, before its deadline only.
type sink struct {
	network.Stream
	deadline time.Time
	written  int
	reset    bool
}

func (s *sink) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *sink) Reset() error                       { s.reset = true; return nil }

func (s *sink) Write(b []byte) (int, error) {
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	s.written += len(b)
	return len(b), nil
}

// Under a bound of the bandwidth pushes to many members wait for longer than a member may
// take to read: no line ends of that. A member that reads nothing still ends its own.
func TestLinesWaitForTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leastRate = 64 << 10
		bound := stream.NewBandwidth(stream.Rates{Send: leastRate}, func(string, time.Duration) {})
		const idle = 30 * time.Second
		var writing sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		data := bytes.Repeat([]byte{1}, lineWrite-64)
		begun := time.Now()
		var sinks []*sink
		for range 60 {
			to := &sink{}
			sinks = append(sinks, to)
			s := bound.Meter(to, t.Context().Done())
			l := newLine("member")
			l.hear(&wire.Takes{Kind: wire.TakesTopic, Topic: wire.Topic{1}})
			l.add(wire.Topic{1}, new(push.Push), data)
			writing.Go(func() { l.write(ctx, s, idle) })
		}
		time.Sleep(10 * idle) // virtual
		end()
		writing.Wait()
		for i, s := range sinks {
			if s.reset || s.written < len(data) {
				t.Fatalf("line %d ended after %d bytes, reset %v", i, s.written, s.reset)
			}
		}
		if whole := time.Duration(len(sinks)*len(data)) * time.Second / leastRate; whole < idle {
			t.Errorf("all of it takes %s, which is less than the idle time-out of %s", whole, idle)
		}
		late := bound.Meter(&sink{}, t.Context().Done())
		_ = late.SetWriteDeadline(begun)
		if _, err := late.Write(data); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write after its deadline: %v", err)
		}
	})
}

// A namespace that pushes more than the member reads holds up no other: a push of each goes
// in turn, whole, and only the busy one says that there is more. What waits stays bounded.
func TestNamespacesTakeTurnsOnALine(t *testing.T) {
	l := newLine("member")
	busy, calm, fresh := wire.Topic{1}, wire.Topic{2}, wire.Topic{3}
	for _, topic := range []wire.Topic{busy, calm, fresh} {
		l.hear(&wire.Takes{Kind: wire.TakesTopic, Topic: topic})
	}
	large, small := bytes.Repeat([]byte{1}, 60<<10), bytes.Repeat([]byte{2}, 100)
	flood := func() {
		for range 2 * pushQueue {
			l.add(busy, new(push.Push), large)
			l.add(busy, new(push.Push), small)
		}
		if l.bytes > lineBytes || l.count > pushQueue {
			t.Fatalf("%d pushes of %d bytes wait", l.count, l.bytes)
		}
	}
	flood()
	l.add(calm, new(push.Push), small)
	l.add(calm, new(push.Push), small)
	flood()
	l.add(fresh, new(push.Push), small)
	var last, of wire.Topic
	var order []wire.Topic
	more := map[wire.Topic]int{}
	for b := l.next(&last); len(b) > 0; b = l.next(&last) {
		for r := bufio.NewReader(bytes.NewReader(b)); ; {
			push, err := wire.ReadDirect(r, &of)
			if err != nil {
				break
			}
			order = append(order, of)
			if m, err := wire.ParsePush(push); err == nil && m.Kind == wire.PushMore {
				more[of]++
			}
		}
	}
	if want := []wire.Topic{busy, calm, fresh, busy, calm, busy}; len(order) < len(want) || !slices.Equal(order[:len(want)], want) {
		t.Errorf("they are written in the order %v", order)
	}
	if len(more) != 1 || more[busy] != 1 {
		t.Errorf("of more is told %v", more)
	}
	if l.count != 0 || l.bytes != 0 || len(l.queues) != 0 {
		t.Errorf("there are left %d pushes, %d bytes, %d queues", l.count, l.bytes, len(l.queues))
	}
	// So it is where pushes are many and small.
	for range 2 * pushQueue {
		l.add(busy, new(push.Push), small)
	}
	l.add(calm, new(push.Push), small)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count != pushQueue || l.queues[calm].behind != nil {
		t.Errorf("%d pushes wait, of the calm namespace %d", l.count, len(l.queues[calm].pushes))
	}
}

// What waits for a slow member is bounded. Beyond that it learns once that there is more.
func TestLineOverflow(t *testing.T) {
	l := newLine("slow")
	topic := wire.Topic{1}
	other := wire.Topic{2}
	l.hear(&wire.Takes{Kind: wire.TakesTopic, Topic: topic})
	data := bytes.Repeat([]byte{1}, 30<<10)
	for range 10 * pushQueue {
		l.add(topic, new(push.Push), data)
		l.add(other, new(push.Push), data) // it is not taken
	}
	if l.bytes > lineBytes || l.count > pushQueue || l.queued(topic) != l.bytes || l.queued(other) != 0 {
		t.Errorf("%d pushes of %d bytes wait", l.count, l.bytes)
	}
	var sent []byte
	var last wire.Topic
	for b := l.next(&last); len(b) > 0; b = l.next(&last) {
		if len(b) > lineWrite+len(data)+64 {
			t.Errorf("%d bytes are written at once", len(b))
		}
		sent = append(sent, b...)
	}
	r := bufio.NewReader(bytes.NewReader(sent))
	more := 0
	for {
		var of wire.Topic
		got, err := wire.ReadDirect(r, &of)
		if err != nil {
			break
		}
		if more > 0 {
			t.Error("there is a push behind the one that says that there is more")
		}
		if m, err := wire.ParsePush(got); err == nil && m.Kind == wire.PushMore {
			more++
		}
	}
	if more != 1 {
		t.Errorf("%d pushes say that there is more", more)
	}
	l.add(topic, new(push.Push), data)
	if b := l.next(&last); len(b) < len(data) {
		t.Error("nothing is pushed once there is room again")
	}
}
