package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
)

// What an inviter hands over is checked: a node that joins is left without a
// namespace rather than with a faulty one.
func TestHostileInviter(t *testing.T) {
	n, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics(), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	secret := dbadapter.Secret{1, 2, 3}
	tk := ticket{inviter: h.ID(), addrs: h.Addrs(), namespace: dbadapter.NamespaceIDOf(secret), name: "notes", role: RoleWrite, expires: time.Now()}
	text, err := tk.encode()
	if err != nil {
		t.Fatal(err)
	}
	member := func(id ID, role Role) joinMember { return joinMember{stateMember{[]byte(id), role, 1}, nil} }
	good := func() joinReply {
		return joinReply{
			Version: joinVersion, Secret: secret[:], Policy: statePolicy{MaxSkew: time.Minute},
			Members: []joinMember{member(h.ID(), RoleAdmin), member(n.ID(), RoleWrite)},
		}
	}
	frame := func(edit func(*joinReply)) []byte {
		r := good()
		edit(&r)
		b, err := cbor.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return append(varint.ToUvarint(uint64(len(b))), b...)
	}
	for name, c := range map[string]struct {
		answer []byte
		want   error // nil: any
	}{
		"another secret":    {frame(func(r *joinReply) { r.Secret = make([]byte, 32) }), nil},
		"no secret":         {frame(func(r *joinReply) { r.Secret = nil }), nil},
		"no skew":           {frame(func(r *joinReply) { r.Policy.MaxSkew = 0 }), nil},
		"not the joiner":    {frame(func(r *joinReply) { r.Members = r.Members[:1] }), nil},
		"not itself":        {frame(func(r *joinReply) { r.Members = r.Members[1:] }), nil},
		"a member twice":    {frame(func(r *joinReply) { r.Members = append(r.Members, r.Members[0]) }), nil},
		"a role too high":   {frame(func(r *joinReply) { r.Members[0].Role = 9 }), nil},
		"another version":   {frame(func(r *joinReply) { r.Version = 9 }), nil},
		"a refusal":         {frame(func(r *joinReply) { r.Denied = "go away\x1b[31m" }), ErrDenied},
		"a length, alone":   {[]byte{0x10}, ErrUnreachable},
		"a vast length":     {varint.ToUvarint(1 << 40), ErrLimit},
		"half an answer":    {frame(func(*joinReply) {})[:50], ErrUnreachable},
		"nothing":           {nil, ErrUnreachable},
		"something else":    {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), nil},
		"text in the field": {append(varint.ToUvarint(3), 0xa1, 0x01, 0x61), nil},
	} {
		h.SetStreamHandler(JoinProtocol, func(s network.Stream) {
			var request joinRequest
			if readControl(s, maxJoinRequest, &request) == nil {
				s.Write(c.answer)
			}
			s.Close()
		})
		_, err := n.Join(t.Context(), text)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := n.Namespaces(); len(got) != 0 {
			t.Fatalf("%s: %d namespaces", name, len(got))
		}
	}
	// The same, without a fault: it was the faults that were refused.
	h.SetStreamHandler(JoinProtocol, func(s network.Stream) { s.Write(frame(func(*joinReply) {})); s.Close() })
	if _, err := n.Join(t.Context(), text); err != nil {
		t.Error(err)
	}
	// An inviter that says nothing is waited for no longer than the caller likes.
	release := make(chan struct{})
	defer close(release)
	h.SetStreamHandler(JoinProtocol, func(s network.Stream) { <-release; s.Reset() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := n.Join(ctx, text); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a silent inviter: %v", err)
	}
}

// A node that closes does not wait for peers that say nothing.
func TestCloseWaitsForNoPeer(t *testing.T) {
	n, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics(), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := ns.SetMember(t.Context(), h.ID(), RoleWrite); err != nil {
		t.Fatal(err)
	}
	if err := n.book.add(h.ID(), h.Addrs()); err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}, 2), make(chan struct{})
	defer close(release)
	silent := func(s network.Stream) { inside <- struct{}{}; <-release; s.Reset() }
	h.SetStreamHandler(JoinProtocol, silent)
	h.SetStreamHandler(SyncProtocol, silent)
	tk := ticket{inviter: h.ID(), addrs: h.Addrs(), namespace: dbadapter.NamespaceID{1}, name: "other", role: RoleWrite, expires: time.Now()}
	text, err := tk.encode()
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 2)
	go func() { _, err := n.Join(context.Background(), text); failed <- err }()
	go func() { _, err := ns.Sync(context.Background(), h.ID(), SyncOptions{}); failed <- err }()
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
