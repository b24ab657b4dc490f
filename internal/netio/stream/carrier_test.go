package stream

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/reconcile"
)

// Over QUIC the writes of this side fail once a peer has refused and closed. What
// the peer said before is heard all the same.
func TestLastWord(t *testing.T) {
	var hosts [2]host.Host
	for i := range hosts {
		h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/udp/0/quic-v1"), libp2p.DisableMetrics())
		must(t, err)
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	a, b := hosts[0], hosts[1]
	must(t, b.Connect(t.Context(), peer.AddrInfo{ID: a.ID(), Addrs: a.Addrs()}))
	carry := func(s network.Stream) *Carrier {
		return New(s, Options{Idle: 30 * time.Second, MinRate: 16 << 10})
	}
	const protocol = "/test/refuse"
	a.SetStreamHandler(protocol, func(s network.Stream) {
		c := carry(s)
		c.pace.begin()
		if _, err := c.in.Peek(1); err != nil { // the stream is opened with the first byte
			t.Error(err)
		}
		c.Refuse(reconcile.ErrBusy)
	})
	for name, write := range map[string]func(c *Carrier) error{
		"while it sends": func(c *Carrier) error {
			return c.lastWord(c.write(make([]byte, 100<<10))) // more than the buffer
		},
		"when it would hear": func(c *Carrier) error {
			if err := c.write([]byte{1}); err != nil {
				return err
			}
			_, _, err := c.receive()
			return err
		},
		"when it ends": func(c *Carrier) error {
			if err := c.write([]byte{1}); err != nil {
				return err
			}
			return c.end(nil)
		},
	} {
		s, err := b.NewStream(t.Context(), a.ID(), protocol)
		must(t, err)
		for err == nil { // until the peer's closing has come
			_, err = s.Write([]byte{0})
		}
		if err := write(carry(s)); !errors.Is(err, reconcile.ErrBusy) {
			t.Errorf("%s: %v, want that the peer is busy", name, err)
		}
	}
}

// scriptedStream is a stream whose deadlines and reads are the test's.
type scriptedStream struct {
	network.Stream
	deadlines []time.Time
}

func (s *scriptedStream) SetReadDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Read(b []byte) (int, error) { return 1, nil }

// A peer that drips bytes gains the time that they take at the least rate, and
// no more: the deadline of a frame does not move with each byte.
func TestDripGainsNoTime(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: (*Bandwidth)(nil).Meter(s, nil), idle: time.Second, rate: 1000}
	p.begin()
	for range 500 {
		if _, err := (*pacedReader)(&p).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := s.deadlines[0].Sub(p.start), s.deadlines[499].Sub(p.start); first != time.Second || last != time.Second+499*time.Millisecond {
		t.Errorf("the deadline moved from %s to %s", first, last)
	}
}

func (s *scriptedStream) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Write(b []byte) (int, error) { return len(b), nil }

// A peer that takes nothing has the idle time, and what the bytes take at the
// least rate.
func TestWritesHaveADeadline(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: (*Bandwidth)(nil).Meter(s, nil), idle: time.Hour, rate: 1}
	before := time.Now()
	if _, err := (*pacedWriter)(&p).Write(make([]byte, 3600)); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	if len(s.deadlines) != 1 || s.deadlines[0].Before(before.Add(2*time.Hour)) || s.deadlines[0].After(after.Add(2*time.Hour)) {
		t.Errorf("deadlines %v of a write at %s", s.deadlines, before)
	}
}

// must ends the test where what it prepares has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
