package netio

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// defaults are the limits of a node's host.
var defaults = Limits{Connections: 200, DialTimeout: 10 * time.Second, Sessions: 16, PeerStreams: 72}

// known are those that a test's host knows for members.
type known struct{ sync.Map }

func (k *known) IsMember(id peer.ID) bool {
	_, is := k.Load(id)
	return is
}

func (k *known) Share(a, b peer.ID) bool { return k.IsMember(a) && k.IsMember(b) }

func freshKey(t *testing.T) (crypto.PrivKey, peer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	must(t, err)
	id, err := peer.IDFromPrivateKey(key)
	must(t, err)
	return key, id
}

// serveForTest is a host that serves a node with these members, until the test ends.
func serveForTest(t *testing.T, cfg Config, members *known) *Network {
	t.Helper()
	cfg.Identity, _ = freshKey(t)
	cfg.Limits = defaults
	h, err := NewHost(cfg)
	must(t, err)
	if members == nil {
		members = &known{}
	}
	n, err := Serve(context.Background(), h, Node{Members: members, Book: NewBook(nil), DialTimeout: defaults.DialTimeout, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() {
		n.Leave()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// must ends the test where what it prepares has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
