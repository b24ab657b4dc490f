package peer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/routing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// inviter is a host with a namespace of its own, and the decisions of a node: it
// makes tickets, and says of them what a test wants said.
type inviter struct {
	host.Host
	core *node.Node
	text string // a ticket
}

func newInviter(t *testing.T, listen ...string) *inviter {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings(listen...), libp2p.DisableMetrics(), libp2p.DisableRelay())
	must(t, err)
	t.Cleanup(func() { h.Close() })
	core := node.New(node.Config{
		ID: node.ID(h.ID()), Sign: h.Peerstore().PrivKey(h.ID()).Sign,
		Now: time.Now, Random: func(node.Purpose) uint64 { return rand.Uint64() },
	})
	secret := core.NewSecret()
	s, err := core.Found(secret, "notes", node.Policy{})
	must(t, err)
	memory := memdb.New(memdb.Options{})
	t.Cleanup(func() { memory.Close() })
	ns, err := core.Open(t.Context(), node.Opening{
		Secret: secret, State: s, Store: memory.Namespace, Save: func(*node.State) error { return nil },
	})
	must(t, err)
	text, err := ns.Invite(membership.InviteOptions{}, netio.AddrBytes(h.Addrs()))
	must(t, err)
	return &inviter{h, core, text}
}

// answer is the reply to a request, its fields changed by edit.
func (v *inviter) answer(from ID, request []byte, edit func(fields map[int]any)) ([]byte, error) {
	reply, _, err := v.core.AnswerJoin(context.Background(), node.ID(from), request, func(node.ID) [][]byte { return nil })
	if err != nil {
		return nil, err
	}
	var fields map[int]any
	if err := cbor.Unmarshal(reply, &fields); err != nil {
		return nil, err
	}
	edit(fields)
	b, err := cbor.Marshal(fields)
	return append(varint.ToUvarint(uint64(len(b))), b...), err
}

// serve answers each join with what say makes of the request.
func (v *inviter) serve(t *testing.T, say func(from ID, request []byte) ([]byte, error)) {
	v.SetStreamHandler(JoinProtocol, func(s network.Stream) {
		request, err := stream.ReadMessage(s, maxJoinRequest)
		if err != nil {
			t.Error(err)
		}
		answer, err := say(s.Conn().RemotePeer(), request)
		if err != nil {
			t.Error(err)
		}
		s.Write(answer)
		s.Close()
	})
}

// The fields of a reply to a join, docs/protocol.
const (
	replyVersion    = 1
	replyDenied     = 2
	replySecret     = 3
	replyCreator    = 4
	replyStatements = 5
)

// What an inviter hands over is checked: a node that joins is left without a
// namespace rather than with a faulty one.
func TestHostileInviter(t *testing.T) {
	n := openForTest(t, Config{})
	v := newInviter(t, "/ip4/127.0.0.1/tcp/0")
	edited := func(edit func(map[int]any)) func(ID, []byte) ([]byte, error) {
		return func(from ID, request []byte) ([]byte, error) { return v.answer(from, request, edit) }
	}
	bytes := func(b []byte) func(ID, []byte) ([]byte, error) {
		return func(ID, []byte) ([]byte, error) { return b, nil }
	}
	type fields = map[int]any
	statements := func(f fields) []any { return f[replyStatements].([]any) }
	for name, c := range map[string]struct {
		say  func(from ID, request []byte) ([]byte, error)
		want error // nil: any
	}{
		"another secret":  {edited(func(f fields) { f[replySecret] = make([]byte, 32) }), nil},
		"no secret":       {edited(func(f fields) { f[replySecret] = nil }), nil},
		"another creator": {edited(func(f fields) { f[replyCreator] = []byte(n.ID()) }), nil},
		"no statements":   {edited(func(f fields) { f[replyStatements] = nil }), nil},
		"a gap":           {edited(func(f fields) { f[replyStatements] = statements(f)[:1] }), nil},
		"the other gap":   {edited(func(f fields) { f[replyStatements] = statements(f)[1:] }), nil},
		"a flipped bit":   {edited(func(f fields) { statements(f)[0].([]byte)[9] ^= 1 }), nil},
		"another version": {edited(func(f fields) { f[replyVersion] = 9 }), nil},
		"a refusal":       {edited(func(f fields) { f[replyDenied] = "go away\x1b[31m" }), ErrDenied},
		"a length, alone": {bytes([]byte{0x10}), ErrUnreachable},
		"a vast length":   {bytes(varint.ToUvarint(1 << 40)), ErrLimit},
		"half an answer": {func(from ID, request []byte) ([]byte, error) {
			b, err := v.answer(from, request, func(fields) {})
			return b[:50], err
		}, ErrUnreachable},
		"nothing":           {bytes(nil), ErrUnreachable},
		"something else":    {bytes([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), nil},
		"text in the field": {bytes(append(varint.ToUvarint(3), 0xa1, 0x01, 0x61)), nil},
	} {
		v.serve(t, c.say)
		_, err := n.Join(t.Context(), v.text)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := n.Namespaces(); len(got) != 0 {
			t.Fatalf("%s: %d namespaces", name, len(got))
		}
	}
	// The same, without a fault: it was the faults that were refused.
	v.serve(t, edited(func(fields) {}))
	if _, err := n.Join(t.Context(), v.text); err != nil {
		t.Error(err)
	}
	// An inviter that says nothing is waited for no longer than the caller likes.
	release := make(chan struct{})
	defer close(release)
	v.SetStreamHandler(JoinProtocol, func(s network.Stream) { <-release; s.Reset() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := n.Join(ctx, v.text); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a silent inviter: %v", err)
	}
}

// A node that closes does not wait for peers that say nothing.
func TestCloseWaitsForNoPeer(t *testing.T) { overEach(t, closeWaitsForNoPeer) }

func closeWaitsForNoPeer(t *testing.T, listen []string) {
	n, err := Open(t.Context(), Config{})
	must(t, err)
	ns := createForTest(t, n, Policy{})
	v := newInviter(t, listen...)
	must(t, ns.SetRole(t.Context(), v.ID(), RoleWrite))
	must(t, n.book.Give(v.ID(), v.Addrs()))
	inside, release := make(chan struct{}, 2), make(chan struct{})
	defer close(release)
	silent := func(s network.Stream) { inside <- struct{}{}; <-release; s.Reset() }
	v.SetStreamHandler(JoinProtocol, silent)
	v.SetStreamHandler(SyncProtocol, silent)
	failed := make(chan error, 2)
	go func() { _, err := n.Join(context.Background(), v.text); failed <- err }()
	go func() { _, err := ns.Sync(context.Background(), v.ID(), SyncOptions{}); failed <- err }()
	<-inside
	<-inside
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("cut by closing: %v", err)
		}
	}
}

// lies has the liar answer each routed request of asker with what answer returns, proved as
// a member proves it; where that is nil it keeps still until the asker gives up.
func (c *shardCluster) lies(liar *Node, asker *Namespace, answer func(*wire.Ask) wire.Answering) {
	c.liesBy(liar, asker, wire.Greeting{}, answer)
}

// liesBy is lies with a greeting.
func (c *shardCluster) liesBy(liar *Node, asker *Namespace, greeting wire.Greeting, answer func(*wire.Ask) wire.Answering) {
	proofs := reconcile.Keys{Secret: c.secret, ID: asker.ID()}
	liar.host.SetStreamHandler(routing.Protocol, func(s network.Stream) {
		defer s.Reset()
		for in := bufio.NewReader(s); ; {
			m, _, err := wire.Read(in)
			ask, ok := m.(*wire.Ask)
			if err != nil || !ok {
				return
			}
			lie := answer(ask)
			if lie == nil {
				_, _ = io.Copy(io.Discard, in)
				return
			}
			reply := &wire.Reply{Subject: ask.Question.Subject(), Answer: lie, Greeting: greeting}
			reconcile.ProveReply(proofs, []byte(liar.ID()), []byte(asker.node.ID()), ask, reply)
			if _, err := s.Write(wire.Append(nil, reply)); err != nil {
				return
			}
		}
	})
}

// hastyHost opens streams whose peer closes before this side does.
type hastyHost struct{ host.Host }

func (h hastyHost) NewStream(ctx context.Context, id libp2ppeer.ID, protocols ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, id, protocols...)
	return hastyStream{s}, err
}

type hastyStream struct{ network.Stream }

// CloseWrite fails as a stream of QUIC does, whose peer has all that was written, has
// answered and closed.
func (s hastyStream) CloseWrite() error {
	return errors.Join(s.Stream.CloseWrite(), errors.New("close called for canceled stream"))
}

// An inviter that answers and closes before the joining node closes its own side has
// redeemed the ticket: the node has joined.
func TestJoinOfAHastyInviter(t *testing.T) {
	inviter := openForTest(t, Config{})
	at := createForTest(t, inviter, Policy{})
	h, err := NewHost(Config{})
	must(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	joinForTest(t, at, openForTest(t, Config{Host: hastyHost{h}}), RoleWrite)
}
