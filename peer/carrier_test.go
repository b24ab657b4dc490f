package peer

import (
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
)

// Over QUIC the writes of this side fail once a peer has refused and closed. What
// the peer said before is heard all the same.
func TestLastWord(t *testing.T) {
	a, b := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}), openForTest(t, Config{})
	if _, err := b.Connect(t.Context(), a.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	const protocol = "/test/refuse"
	a.host.SetStreamHandler(protocol, func(s network.Stream) {
		c := newCarrier(s, a.limits, throttles{})
		c.pace.begin()
		if _, err := c.in.Peek(1); err != nil { // the stream is opened with the first byte
			t.Error(err)
		}
		c.refuse(ErrBusy)
	})
	for name, write := range map[string]func(c *carrier) error{
		"while it sends": func(c *carrier) error {
			return c.lastWord(c.write(make([]byte, 100<<10))) // more than the buffer
		},
		"when it would hear": func(c *carrier) error {
			if err := c.write([]byte{1}); err != nil {
				return err
			}
			_, _, err := c.receive()
			return err
		},
		"when it ends": func(c *carrier) error {
			if err := c.write([]byte{1}); err != nil {
				return err
			}
			return c.end(nil)
		},
	} {
		s, err := b.host.NewStream(t.Context(), a.self.id, protocol)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil { // until the peer's closing has come
			_, err = s.Write([]byte{0})
		}
		if err := write(newCarrier(s, b.limits, throttles{})); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v, want that the peer is busy", name, err)
		}
	}
}
