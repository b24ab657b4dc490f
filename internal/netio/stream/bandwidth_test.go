package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pipe is one direction of a stream: it holds a window of bytes, as a connection does,
// and keeps the deadlines of both ends.
type pipe struct {
	mu        sync.Mutex
	moved     *sync.Cond
	held      []byte
	over      bool
	passed    int
	deadlines [2]time.Time // of the reader and of the writer
}

// pipeWindow is what yamux gives a stream at first.
const pipeWindow = 256 << 10

func newPipe() *pipe {
	p := &pipe{}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// await waits until ready, or the deadline of one end.
func (p *pipe) await(end int, ready func() bool) error {
	for !ready() {
		left := time.Until(p.deadlines[end])
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		timer := time.AfterFunc(left, p.moved.Broadcast)
		p.moved.Wait()
		timer.Stop()
	}
	return nil
}

func (p *pipe) read(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.await(0, func() bool { return len(p.held) > 0 || p.over }); err != nil {
		return 0, err
	}
	if n = copy(b, p.held); n == 0 {
		return 0, io.EOF
	}
	p.held = p.held[n:]
	p.moved.Broadcast()
	return n, nil
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n < len(b) {
		if err := p.await(1, func() bool { return len(p.held) < pipeWindow || p.over }); err != nil {
			return n, err
		}
		if p.over {
			return n, network.ErrReset
		}
		some := min(len(b)-n, pipeWindow-len(p.held))
		p.held, n, p.passed = append(p.held, b[n:n+some]...), n+some, p.passed+some
		p.moved.Broadcast()
	}
	return n, nil
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.moved.Broadcast()
}

func (p *pipe) setDeadline(end int, t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadlines[end] = t
	return nil
}

// leastRate is the least bound that a node takes.
const leastRate = 64 << 10

// remote is a connection to a peer of that name.
type remote struct {
	network.Conn
	id peer.ID
}

func (r remote) RemotePeer() peer.ID { return r.id }

// named is a stream with a peer of that name.
type named struct {
	network.Stream
	id peer.ID
}

func (s named) Conn() network.Conn { return remote{id: s.id} }

// pipeStream is one end of a stream in memory.
type pipeStream struct {
	network.Stream
	in, out *pipe
}

func newPipeStreams() (a, b *pipeStream) {
	there, back := newPipe(), newPipe()
	return &pipeStream{in: back, out: there}, &pipeStream{in: there, out: back}
}

func (s *pipeStream) Read(b []byte) (int, error)         { return s.in.read(b) }
func (s *pipeStream) Write(b []byte) (int, error)        { return s.out.write(b) }
func (s *pipeStream) SetReadDeadline(t time.Time) error  { return s.in.setDeadline(0, t) }
func (s *pipeStream) SetWriteDeadline(t time.Time) error { return s.out.setDeadline(1, t) }
func (s *pipeStream) Close() error                       { s.out.close(); return nil }
func (s *pipeStream) Conn() network.Conn                 { return remote{id: "other"} }
func (s *pipeStream) Reset() error                       { s.out.close(); s.in.close(); return nil }

// bareSide is a set of records, and what a session about it takes.
type bareSide struct {
	t    *testing.T
	name string
	keys reconcile.Keys
	live *replica.Live
	ns   dbadapter.Namespace
}

func newBareSide(t *testing.T, name string) *bareSide {
	t.Helper()
	s := &bareSide{t: t, name: name, keys: reconcile.DeriveKeys(dbadapter.Secret{1}, nil)}
	s.live = replica.New(s.keys)
	store := memdb.New(memdb.Options{})
	t.Cleanup(func() { store.Close() })
	var err error
	if s.ns, err = store.Namespace(t.Context(), s.keys.ID, s.keys.Hasher, s.live.Observe); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *bareSide) put(records ...dbadapter.Record) {
	s.t.Helper()
	for _, r := range records {
		hashed, err := dbadapter.Hash(s.keys.Hasher, r)
		if err == nil {
			_, err = s.ns.Apply(s.t.Context(), []dbadapter.Write{{Record: hashed}})
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *bareSide) open() reconcile.Replica {
	s.t.Helper()
	r, err := s.live.Snapshot(s.t.Context(), s.ns, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *bareSide) options(remote *bareSide) reconcile.Options {
	start := time.Now()
	return reconcile.Options{
		Keys: s.keys, Self: []byte(s.name), Remote: []byte(remote.name), Elapsed: func() time.Duration { return time.Since(start) },
		Admit: func(records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) {
			return func() (verdicts []reconcile.Verdict, err error) {
				for _, r := range records {
					outcomes, err := s.ns.Apply(context.Background(), []dbadapter.Write{{Record: r}})
					if err != nil {
						return nil, err
					}
					verdicts = append(verdicts, reconcile.Verdict{Result: outcomes[0].Result})
				}
				return verdicts, nil
			}
		},
	}
}

// syncOver syncs two sides over a stream in memory. The responder computes for a
// while before it answers.
func syncOver(t *testing.T, a, b *bareSide, computes time.Duration, of [2]*Bandwidth) (reports [2]reconcile.Report, streams [2]*pipeStream) {
	t.Helper()
	streams[0], streams[1] = newPipeStreams()
	carry := func(i int) *Carrier {
		return New(streams[i], Options{Idle: 30 * time.Second, MinRate: 16 << 10, Bandwidth: of[i]})
	}
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() {
		s := reconcile.Initiate(a.open(), a.options(b))
		errs[0] = carry(0).Run(t.Context(), s, func(reconcile.Report) {})
		reports[0] = s.Report()
	})
	wg.Go(func() {
		var s *reconcile.Session
		s = reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) {
			for worked := time.Duration(0); worked < computes; worked += time.Second {
				time.Sleep(time.Second) // virtual
				if err := s.Tick(); err != nil {
					return nil, err
				}
			}
			return b.open(), nil
		}, b.options(a))
		errs[1] = carry(1).Run(t.Context(), s, func(reconcile.Report) {})
		reports[1] = s.Report()
	})
	wg.Wait()
	must(t, errors.Join(errs[:]...))
	return reports, streams
}

// Several syncs share the least bound that there is, each for longer than any
// time-out, with records that take half a minute each; the side that computes says so
// in time. Nothing is cut off, and no more moves than the bound allows.
func TestBandwidthIsShared(t *testing.T) {
	for name, bounds := range map[string]Rates{
		"sends": {Send: leastRate}, "receives": {Receive: leastRate},
		"sends to one peer": {PeerSend: leastRate}, "receives from one peer": {PeerReceive: leastRate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waited := map[string]time.Duration{}
				var mu sync.Mutex
				bound := NewBandwidth(bounds, func(direction string, d time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					waited[direction] += d
				})
				sends := bounds.Send+bounds.PeerSend > 0
				start := time.Now()
				var wg sync.WaitGroup
				var moved [2]int
				for i := range moved { // one began here, one there
					bounded, other := newBareSide(t, "bounded"), newBareSide(t, "other")
					has := other
					if sends {
						has = bounded
					}
					for k := range 4 {
						has.put(dbadapter.Record{
							Key: fmt.Append(nil, k), Value: bytes.Repeat([]byte{byte(k)}, dbadapter.MaxValue),
							Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Now()), Writer: 1},
						})
					}
					wg.Go(func() {
						a, b, of, at := bounded, other, [2]*Bandwidth{bound, nil}, 0
						if i == 1 {
							a, b, of, at = other, bounded, [2]*Bandwidth{nil, bound}, 1
						}
						reports, streams := syncOver(t, a, b, 2*time.Minute, of)
						if reports[0].Working < 20 || !reports[0].Verified || !reports[1].Verified {
							t.Errorf("the initiator heard %d times that the other side works; verified %t, %t", reports[0].Working, reports[0].Verified, reports[1].Verified)
						}
						moved[i] = streams[at].in.passed
						if sends {
							moved[i] = streams[at].out.passed
						}
					})
				}
				wg.Wait()
				took, least := time.Since(start), time.Duration(moved[0]+moved[1]-leastRate)*time.Second/leastRate
				if moved[0] < 4<<20 || took < least || took > least+3*time.Minute {
					t.Errorf("%d bytes took %s; the bound demands %s", moved, took, least)
				}
				if direction := map[bool]string{true: "sent", false: "received"}[sends]; waited[direction] < least || len(waited) != 1 {
					t.Errorf("%v was waited for; want %s of %s", waited, least, direction)
				}
			})
		})
	}
}

// A stream that is cut while it waits for the bound ends at once.
func TestBandwidthOfACutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := NewBandwidth(Rates{Send: leastRate}, func(string, time.Duration) {})
		m := bound.Meter(named{id: "other"}, nil)
		m.send.wait(meteredBytes, nil)
		done := make(chan struct{})
		close(done)
		start := time.Now()
		for range 100 {
			m.send.wait(meteredBytes, done)
		}
		if time.Since(start) > 0 {
			t.Errorf("it waited for %s", time.Since(start))
		}
	})
}

// What is kept of peers that come and go is bounded, and a peer gains nothing by
// coming anew.
func TestBandwidthForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := NewBandwidth(Rates{PeerReceive: leastRate}, func(string, time.Duration) {})
		for i := range 1000 {
			m := bound.Meter(named{id: peer.ID(fmt.Append(nil, i))}, nil)
			m.receive.wait(1, nil)
			m.release()
			time.Sleep(time.Millisecond)
		}
		if len(bound.peers) > 3 {
			t.Errorf("%d peers are remembered", len(bound.peers))
		}
		start := time.Now()
		for range 64 {
			m := bound.Meter(named{id: "again"}, nil)
			m.receive.wait(meteredBytes, nil)
			m.release()
		}
		if took := time.Since(start); took < 15*time.Second {
			t.Errorf("1 MiB came in %s", took)
		}
	})
}
