package peer

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// onPath is what stands between two nodes: it keeps what passes, and alters it once told to.
type onPath struct {
	alter atomic.Bool
	mu    sync.Mutex // guards seen
	seen  bytes.Buffer
}

// passing reads what passes.
type passing struct {
	io.Reader
	path *onPath
}

func (r passing) Read(b []byte) (n int, err error) {
	n, err = r.Reader.Read(b)
	r.path.mu.Lock()
	defer r.path.mu.Unlock()
	if r.path.seen.Write(b[:n]); n > 0 && r.path.alter.Load() {
		b[n/2] ^= 1
	}
	return n, err
}

// between gives an address from which connections lead to that which far says later.
func (p *onPath) between(t *testing.T, far <-chan multiaddr.Multiaddr) multiaddr.Multiaddr {
	l := must1(net.Listen("tcp", "127.0.0.1:0"))
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		to := <-far
		for near, err := l.Accept(); err == nil; near, err = l.Accept() {
			far, err := manet.Dial(to)
			if err != nil {
				near.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
				running.Go(func() {
					defer ends[0].Close()
					defer ends[1].Close()
					_, _ = io.Copy(ends[1], passing{ends[0], p})
				})
			}
		}
	})
	return must1(manet.FromNetAddr(l.Addr()))
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Who stands on the path reads nothing of what passes, and a connection in which it alters a bit ends.
func TestOnThePath(t *testing.T) {
	var path onPath
	far := make(chan multiaddr.Multiaddr, 1)
	cfg := Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, AnnounceAddrs: []string{path.between(t, far).String()}, SyncInterval: -1}
	b := openForTest(t, cfg)
	far <- b.host.Network().ListenAddresses()[0]
	a := openForTest(t, Config{ListenAddrs: []string{}, SyncInterval: -1})
	there := must1(b.CreateNamespace(t.Context(), "notes", Policy{}))
	here := joinForTest(t, there, a, RoleWrite)
	value := bytes.Repeat([]byte("a value that only members read "), 100)
	must1(there.Put(t.Context(), []byte("k"), value))
	must1(here.Put(t.Context(), []byte("l"), value))
	conn := a.host.Network().ConnsToPeer(b.self.id)[0]
	if r, err := here.Sync(t.Context(), b.self.id, SyncOptions{}); err != nil || !r.Verified || conn.ConnState().Security == "" || conn.IsClosed() {
		t.Fatalf("%+v, %v, over %q", r, err, conn.ConnState().Security)
	}
	path.mu.Lock()
	seen := bytes.Clone(path.seen.Bytes())
	path.mu.Unlock()
	id := here.ID()
	if len(seen) < 2*len(value) || bytes.Contains(seen, value[:16]) || bytes.Contains(seen, id[:]) {
		t.Errorf("of %d bytes that passed, some can be read", len(seen))
	}
	path.alter.Store(true)
	if stream, err := conn.NewStream(t.Context()); err == nil {
		_, _ = stream.Write(value)
	}
	eventually(t, "a connection whose bytes are altered ends", conn.IsClosed)
}
