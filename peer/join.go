package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
)

// JoinProtocol is the libp2p protocol with which a ticket is redeemed: one
// request and one reply, each a length (uvarint) and a CBOR map.
const JoinProtocol protocol.ID = "/syncd/join/1.0.0"

// joinVersion is the first field of both messages.
const joinVersion = 1

// joinTimeout bounds both messages together.
const joinTimeout = 20 * time.Second

type joinRequest struct {
	Version   int      `cbor:"1,keyasint"`
	Namespace []byte   `cbor:"2,keyasint"`
	Token     []byte   `cbor:"3,keyasint"`
	Addrs     [][]byte `cbor:"4,keyasint"` // where the joiner can be dialled
}

// joinReply carries either Denied, a text for humans, or the namespace.
type joinReply struct {
	Version int          `cbor:"1,keyasint"`
	Denied  string       `cbor:"2,keyasint"`
	Secret  []byte       `cbor:"3,keyasint"`
	Policy  statePolicy  `cbor:"4,keyasint"`
	Members []joinMember `cbor:"5,keyasint"`
}

type joinMember struct {
	stateMember
	Addrs [][]byte `cbor:"4,keyasint"`
}

// Join redeems a ticket: it connects to who made it, becomes a member, and
// opens the namespace here, still empty. If the ticket's name is taken here by
// another namespace, a part of the id is appended. Joining again with a ticket
// that this node has redeemed is no error until it expires. Where the namespace
// is here already, who made the ticket must be an admin in this node's own list
// (else ErrDenied): its list of members is added to this one.
func (n *Node) Join(ctx context.Context, text string) (*Namespace, error) {
	t, err := parseTicket(text)
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if !n.gate.enter() {
		return nil, fmt.Errorf("join %s: %w", t.name, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	ns, err := n.join(ctx, t)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, fmt.Errorf("join %s at %s: %w", t.name, t.inviter, err)
	}
	return ns, nil
}

func (n *Node) join(ctx context.Context, t *ticket) (*Namespace, error) {
	if t.inviter == n.self.id {
		return nil, fmt.Errorf("%w: this node made the ticket; use it on another", ErrDenied)
	}
	reply, err := n.askToJoin(ctx, t)
	if err != nil {
		return nil, err
	}
	secret, s, err := n.readJoin(t, reply)
	if err != nil {
		return nil, err
	}
	n.changing.Lock()
	defer n.changing.Unlock()
	ns := n.namespaceByID(t.namespace)
	if ns != nil {
		err = ns.merge(t.inviter, s)
	} else {
		s.Name = n.freeName(t.name, t.namespace)
		ns, err = n.addNamespace(ctx, secret, s)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range reply.Members {
		id, err := peer.IDFromBytes(m.ID)
		if err != nil || id == n.self.id {
			continue
		}
		if addrs := parseAddrs(m.Addrs); len(addrs) > 0 {
			if err := n.book.add(id, addrs); err != nil {
				return ns, err
			}
		}
	}
	return ns, n.book.add(t.inviter, t.addrs)
}

// askToJoin sends the token to the inviter, whose id the connection proves.
func (n *Node) askToJoin(ctx context.Context, t *ticket) (*joinReply, error) {
	n.host.Peerstore().AddAddrs(t.inviter, t.addrs, peerstore.TempAddrTTL)
	if err := n.dial(ctx, t.inviter, t.addrs); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	stream, err := n.host.NewStream(ctx, t.inviter, JoinProtocol)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer stream.Reset()
	cut := context.AfterFunc(ctx, func() { stream.Reset() })
	defer cut()
	request := joinRequest{joinVersion, t.namespace[:], t.token[:], addrBytes(n.dialable())}
	if err := writeControl(stream, request); err != nil {
		return nil, broken(err)
	}
	if err := stream.CloseWrite(); err != nil {
		return nil, broken(err)
	}
	reply := new(joinReply)
	if err := readControl(stream, maxJoinReply, reply); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: no answer: %w", ErrUnreachable, ctx.Err())
		}
		return nil, err
	}
	switch {
	case reply.Denied != "":
		return nil, fmt.Errorf("%w: it says: %.200q", ErrDenied, reply.Denied)
	case reply.Version != joinVersion:
		return nil, fmt.Errorf("it speaks version %d of the protocol, this node version %d; upgrade the older", reply.Version, joinVersion)
	}
	return reply, nil
}

// readJoin checks what the inviter handed over.
func (n *Node) readJoin(t *ticket, reply *joinReply) (secret dbadapter.Secret, s *state, err error) {
	if len(reply.Secret) != len(secret) || dbadapter.NamespaceIDOf(dbadapter.Secret(reply.Secret)) != t.namespace {
		return secret, nil, errors.New("it handed over another namespace than the ticket's; do not trust it")
	}
	s = &state{Format: stateFormat, Name: t.name, Policy: reply.Policy}
	for _, m := range reply.Members {
		s.Members = append(s.Members, m.stateMember)
	}
	if err := s.validate(); err != nil {
		return secret, nil, fmt.Errorf("it handed over a faulty namespace: %w", err)
	}
	roster, err := newRoster(s)
	if err != nil {
		return secret, nil, err
	}
	if !roster.has(n.self.id, RoleRead) || !roster.has(t.inviter, RoleAdmin) {
		return secret, nil, errors.New("it handed over a list in which this node, or itself, has no part")
	}
	return dbadapter.Secret(reply.Secret), s, nil
}

// merge adds to the members those of another admin's list; roles only grow.
// Anybody can say of itself that it is an admin: what this node's own list says
// of it counts.
func (ns *Namespace) merge(admin ID, other *state) error {
	defer ns.asides.forget()
	return ns.update(func(s *state) error {
		has := map[string]Role{}
		for _, m := range s.Members {
			has[string(m.ID)] = m.Role
		}
		if has[string(admin)] < RoleAdmin {
			return fmt.Errorf("%w: the namespace is here already, as %s, and in its list who made the ticket is no admin; if it should be, give it that role first",
				ErrDenied, s.Name)
		}
		for _, m := range other.Members {
			if err := s.setMember(ID(m.ID), max(m.Role, has[string(m.ID)]), m.Since); err != nil {
				return err
			}
		}
		return nil
	})
}

// serveJoin redeems a ticket that a peer presents.
func (n *Node) serveJoin(stream network.Stream) {
	if !n.gate.enter() {
		stream.Reset()
		return
	}
	defer n.gate.leave()
	stop := context.AfterFunc(n.ctx, func() { stream.Reset() })
	defer stop()
	remote := stream.Conn().RemotePeer()
	leave, ok := n.sessions.greet(remote, n.isMember(remote))
	if !ok {
		stream.Reset()
		return
	}
	defer leave()
	if err := stream.SetDeadline(time.Now().Add(min(joinTimeout, n.limits.IdleTimeout))); err != nil {
		stream.Reset()
		return
	}
	var request joinRequest
	if err := readControl(stream, maxJoinRequest, &request); err != nil {
		n.log.Debug("a join did not begin", logPeer(remote), logError(err))
		stream.Reset()
		return
	}
	reply, err := n.admit(remote, &request)
	if err != nil {
		n.log.Info("a ticket was not taken", logPeer(remote), logError(err))
	}
	if writeControl(stream, reply) != nil || stream.Close() != nil {
		stream.Reset()
	}
}

// admit decides upon a request, and writes the reply.
func (n *Node) admit(remote ID, request *joinRequest) (*joinReply, error) {
	reply := &joinReply{Version: joinVersion}
	deny := func(err error) (*joinReply, error) {
		reply.Denied = "this node failed; see its log"
		if errors.Is(err, ErrDenied) || errors.Is(err, ErrLimit) {
			reply.Denied = err.Error()
		}
		return reply, err
	}
	if request.Version != joinVersion {
		return reply, fmt.Errorf("version %d of the protocol", request.Version)
	}
	var ns *Namespace
	if len(request.Namespace) == len(dbadapter.NamespaceID{}) {
		ns = n.namespaceByID(dbadapter.NamespaceID(request.Namespace))
	}
	if ns == nil || !ns.gate.enter() {
		return deny(errTicketUnknown)
	}
	defer ns.gate.leave()
	if err := ns.redeem(remote, request.Token); err != nil {
		return deny(err)
	}
	ns.asides.forget()
	n.log.Info("a node has joined", logNamespace(ns), logPeer(remote))
	if addrs := parseAddrs(request.Addrs); len(addrs) > 0 {
		if err := n.book.add(remote, addrs); err != nil {
			n.log.Warn("the addresses of a new member could not be saved", logPeer(remote), logError(err))
		}
	}
	roster := ns.roster.Load()
	reply.Secret, reply.Policy = ns.keys.Secret[:], roster.state.Policy
	for _, m := range roster.state.Members {
		addrs := n.book.of(ID(m.ID))
		if ID(m.ID) == n.self.id {
			addrs = n.dialable()
		}
		reply.Members = append(reply.Members, joinMember{m, addrBytes(addrs)})
	}
	return reply, nil
}

// writeControl sends a message of the join protocol.
func writeControl(w io.Writer, message any) error {
	body, err := cbor.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(varint.ToUvarint(uint64(len(body))), body...))
	return err
}

// readControl receives one of at most limit bytes.
func readControl(r io.Reader, limit uint64, into any) error {
	buffered := bufio.NewReader(r)
	size, err := varint.ReadUvarint(buffered)
	if err != nil {
		return broken(err)
	}
	if size > limit {
		return fmt.Errorf("%w: a message of %d bytes; at most %d are allowed", ErrLimit, size, limit)
	}
	// ReadAll grows as the bytes come: the announced length allocates nothing.
	body, err := io.ReadAll(io.LimitReader(buffered, int64(size)))
	if err != nil {
		return broken(err)
	}
	if uint64(len(body)) != size {
		return broken(io.ErrUnexpectedEOF)
	}
	if err := strict.Unmarshal(body, into); err != nil {
		return fmt.Errorf("malformed message: %w", err)
	}
	return nil
}
