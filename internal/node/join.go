package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
)

// joinVersion is the first field of both messages of the join protocol.
const joinVersion = 1

// joinRequest presents a ticket's token to its inviter.
type joinRequest struct {
	Version   int      `cbor:"1,keyasint"`
	Namespace []byte   `cbor:"2,keyasint"`
	Token     []byte   `cbor:"3,keyasint"`
	Addrs     [][]byte `cbor:"4,keyasint"` // where the joiner can be dialled
}

// joinReply carries either Denied, a text for people, or the namespace.
type joinReply struct {
	Version    int             `cbor:"1,keyasint"`
	Denied     string          `cbor:"2,keyasint"`
	Secret     []byte          `cbor:"3,keyasint"`
	Creator    []byte          `cbor:"4,keyasint"`
	Statements [][]byte        `cbor:"5,keyasint"` // of the list of members, without those that are void
	Addresses  []joinAddresses `cbor:"6,keyasint"`
	// Pledged is what the inviter has promised, and members may have collected up
	// to: the newcomer writes nothing up to that.
	Pledged dbadapter.Timestamp `cbor:"7,keyasint"`
	// Placement is how the namespace is cut into shards; empty: it is one.
	Placement []byte `cbor:"8,keyasint,omitempty"`
}

// joinAddresses are where a member can be dialled.
type joinAddresses struct {
	ID    []byte   `cbor:"1,keyasint"`
	Addrs [][]byte `cbor:"2,keyasint"`
}

// RequestJoin is the message that redeems a ticket. addrs are where this node
// can be dialled.
func (n *Node) RequestJoin(t *Ticket, addrs [][]byte) ([]byte, error) {
	if t.Inviter == n.ID {
		return nil, fmt.Errorf("%w: this node made the ticket; use it on another", ErrDenied)
	}
	return cbor.Marshal(joinRequest{joinVersion, t.Namespace[:], t.Token[:], addrs})
}

// Addresses are where a member can be dialled, in binary.
type Addresses struct {
	ID    ID
	Addrs [][]byte
}

// AnswerJoin decides upon a request of a peer, and writes the reply. An error says
// why the peer was turned down, and is no reason not to send the reply. The
// addresses that this node knows of a member, itself included, are read from book.
// The peer says in joiner where it can be dialled.
func (n *Node) AnswerJoin(ctx context.Context, remote ID, request []byte, book func(ID) [][]byte) (reply []byte, joiner [][]byte, err error) {
	var q joinRequest
	if err := strict.Unmarshal(request, &q); err != nil {
		return nil, nil, fmt.Errorf("malformed message: %w", err)
	}
	// A peer that speaks another version reads this node's in the reply, and no text.
	r := &joinReply{Version: joinVersion}
	if err = n.admitJoin(ctx, remote, &q, book, r); err != nil && q.Version == joinVersion {
		r.Denied = "this node failed; see its log"
		if errors.Is(err, ErrDenied) || errors.Is(err, dbadapter.ErrLimit) {
			r.Denied = err.Error()
		}
	}
	reply, failed := cbor.Marshal(r)
	return reply, q.Addrs, errors.Join(err, failed)
}

func (n *Node) admitJoin(ctx context.Context, remote ID, q *joinRequest, book func(ID) [][]byte, r *joinReply) error {
	if q.Version != joinVersion {
		return fmt.Errorf("it speaks version %d of the join protocol", q.Version)
	}
	var ns *Namespace
	if len(q.Namespace) == len(dbadapter.NamespaceID{}) {
		ns = n.Namespace(dbadapter.NamespaceID(q.Namespace))
	}
	if ns == nil {
		return errTicketUnknown
	}
	if err := ns.redeem(ctx, remote, q.Token); errors.Is(err, dbadapter.ErrClosed) {
		return errTicketUnknown // the namespace is being dropped
	} else if err != nil {
		return err
	}
	for _, set := range ns.Sets() {
		set.declined.forget()
	}
	r.Secret, r.Creator, r.Statements = ns.secret[:], []byte(ns.creator), ns.core()
	r.Placement = ns.state.Load().Placement
	// After the grant: no promise is made any more of what does not know it.
	r.Pledged = ns.pledgedUpTo()
	for _, m := range ns.Members().Members() {
		if addrs := book(m.ID); m.ID != remote && len(addrs) > 0 {
			r.Addresses = append(r.Addresses, joinAddresses{[]byte(m.ID), addrs})
		}
	}
	return nil
}

// Joined is what a reply to a join hands over.
type Joined struct {
	Secret dbadapter.Secret
	State  *State
	// Members are where the others can be dialled.
	Members []Addresses
}

// ReadJoin checks what the inviter of a ticket replied.
func (n *Node) ReadJoin(t *Ticket, reply []byte) (*Joined, error) {
	var r joinReply
	if err := strict.Unmarshal(reply, &r); err != nil {
		return nil, fmt.Errorf("malformed message: %w", err)
	}
	switch {
	case r.Denied != "":
		return nil, fmt.Errorf("%w: it says: %.200q", ErrDenied, strings.TrimPrefix(r.Denied, ErrDenied.Error()+": "))
	case r.Version != joinVersion:
		return nil, fmt.Errorf("it speaks version %d of the protocol, this node version %d; upgrade the older", r.Version, joinVersion)
	case len(r.Secret) != len(dbadapter.Secret{}) || dbadapter.NamespaceIDOf(dbadapter.Secret(r.Secret), slices.Concat(r.Creator, r.Placement)) != t.Namespace:
		return nil, errors.New("it handed over another namespace than the ticket's; do not trust it")
	}
	j := &Joined{
		Secret: dbadapter.Secret(r.Secret),
		State:  &State{Format: StateFormat, Name: t.Name, Creator: r.Creator, Placement: r.Placement},
	}
	if j.State.Sharded() {
		j.State.Format = ShardedFormat
	}
	j.State.Vouched = watermark.State{Pledged: r.Pledged, Recovering: true}
	if err := j.State.validate(); err != nil {
		return nil, fmt.Errorf("it handed over a faulty namespace: %w", err)
	}
	set := n.newSet(t.Namespace, j.State)
	// What the set does not take says nothing of the inviter: a node has it from
	// others, and sets have bounds.
	set.Load(slices.Values(r.Statements))
	j.State.Seeds = values(set)
	members := &Members{List: set.List()}
	if !members.Has(n.ID, RoleRead) || !members.Has(t.Inviter, RoleAdmin) {
		return nil, errors.New("it handed over a list of members without this node, or without itself as an admin")
	}
	if err := hlc.Check(r.Pledged.Time(), n.Now(), members.Policy().MaxSkew); r.Pledged != 0 && err != nil {
		return nil, fmt.Errorf("what the inviter has promised is from the future; is this machine's clock right, and the inviter's? %w", err)
	}
	for _, a := range r.Addresses {
		if id := ID(a.ID); id != n.ID && members.Has(id, RoleRead) {
			j.Members = append(j.Members, Addresses{id, a.Addrs})
		}
	}
	return j, nil
}

// Rejoin takes what a reply to a join hands over of a namespace that is here
// already. That is the statements of the list of members that this node has not
// heard.
func (ns *Namespace) Rejoin(ctx context.Context, j *Joined) (err error) {
	defer func() { err = errors.Join(err, ns.renounce(ctx)) }()
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.over {
		return dbadapter.ErrClosed
	}
	ns.clock.Observe(hlc.Timestamp(j.State.Vouched.Pledged))
	if ns.rule != nil && j.State.Vouched.Pledged > ns.state.Load().Vouched.Pledged { // for shards that are to come
		if err := ns.update(func(s *State) error { s.Vouched.Pledged = j.State.Vouched.Pledged; return nil }); err != nil {
			return err
		}
	}
	for _, set := range ns.Sets() {
		set.declined.forget()
		if err := set.gc.Update(func(w *watermark.Watermark) bool { return w.TakeOver(j.State.Vouched.Pledged) }); err != nil {
			return err
		}
	}
	_, refused, err := ns.take(ctx, j.State.Seeds)
	// What a peer has shown of a removal the inviter has not heard, or does not count.
	return errors.Join(err, ns.forgetRemoval(), errors.Join(refused...))
}
