package node

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
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
	Version int          `cbor:"1,keyasint"`
	Denied  string       `cbor:"2,keyasint"`
	Secret  []byte       `cbor:"3,keyasint"`
	Policy  storedPolicy `cbor:"4,keyasint"`
	Members []joinMember `cbor:"5,keyasint"`
	Creator []byte       `cbor:"6,keyasint"`
}

type joinMember struct {
	storedMember
	Addrs [][]byte `cbor:"4,keyasint"`
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

// AnswerJoin decides upon a request of a peer, and writes the reply. An error
// says why the peer was turned down, and is no reason not to send the reply.
// book gives the addresses that this node knows of a member, itself included.
// joiner is where the peer says that it can be dialled.
func (n *Node) AnswerJoin(remote ID, request []byte, book func(ID) [][]byte) (reply []byte, joiner [][]byte, err error) {
	var q joinRequest
	if err := strict.Unmarshal(request, &q); err != nil {
		return nil, nil, fmt.Errorf("malformed message: %w", err)
	}
	// A peer that speaks another version reads this node's in the reply, and no text.
	r := &joinReply{Version: joinVersion}
	if err = n.admitJoin(remote, &q, book, r); err != nil && q.Version == joinVersion {
		r.Denied = "this node failed; see its log"
		if errors.Is(err, ErrDenied) || errors.Is(err, dbadapter.ErrLimit) {
			r.Denied = err.Error()
		}
	}
	reply, failed := cbor.Marshal(r)
	return reply, q.Addrs, errors.Join(err, failed)
}

func (n *Node) admitJoin(remote ID, q *joinRequest, book func(ID) [][]byte, r *joinReply) error {
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
	if err := ns.redeem(remote, q.Token); errors.Is(err, dbadapter.ErrClosed) {
		return errTicketUnknown // the namespace is being dropped
	} else if err != nil {
		return err
	}
	ns.declined.forget()
	members := ns.Members()
	r.Secret, r.Creator, r.Policy = ns.Keys.Secret[:], members.state.Creator, members.state.Policy
	for _, m := range members.state.Members {
		r.Members = append(r.Members, joinMember{m, book(ID(m.ID))})
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
		return nil, fmt.Errorf("%w: it says: %.200q", ErrDenied, r.Denied)
	case r.Version != joinVersion:
		return nil, fmt.Errorf("it speaks version %d of the protocol, this node version %d; upgrade the older", r.Version, joinVersion)
	case len(r.Secret) != len(dbadapter.Secret{}) || dbadapter.NamespaceIDOf(dbadapter.Secret(r.Secret), r.Creator) != t.Namespace:
		return nil, errors.New("it handed over another namespace than the ticket's; do not trust it")
	}
	j := &Joined{Secret: dbadapter.Secret(r.Secret), State: &State{Format: StateFormat, Name: t.Name, Creator: r.Creator, Policy: r.Policy}}
	for _, m := range r.Members {
		j.State.Members = append(j.State.Members, m.storedMember)
		if ID(m.ID) != n.ID {
			j.Members = append(j.Members, Addresses{ID(m.ID), m.Addrs})
		}
	}
	if err := j.State.validate(); err != nil {
		return nil, fmt.Errorf("it handed over a faulty namespace: %w", err)
	}
	members, err := newMembers(j.State)
	if err != nil {
		return nil, err
	}
	if !members.Has(n.ID, RoleRead) || !members.Has(t.Inviter, RoleAdmin) {
		return nil, errors.New("it handed over a list of members without this node, or without itself as an admin")
	}
	return j, nil
}

// Merge adds to the members those of another admin's list; roles only grow.
// A node can list itself as an admin: this node's own list decides.
func (ns *Namespace) Merge(admin ID, other *State) error {
	defer ns.declined.forget()
	return ns.update(func(s *State) error {
		has := map[string]Role{}
		for _, m := range s.Members {
			has[string(m.ID)] = m.Role
		}
		if has[string(admin)] < RoleAdmin {
			return fmt.Errorf("%w: the namespace is here already, as %s, and this node's list does not have the inviter as an admin; if it should be, give it that role first",
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

// SetMember adds a node to this node's list of members, or gives it another
// role. The tickets that the node has redeemed here are void from then on.
func (ns *Namespace) SetMember(id ID, role Role) error {
	defer ns.declined.forget()
	return ns.update(func(s *State) error {
		if !role.Valid() {
			return fmt.Errorf("%w: there is no %s", ErrInvalid, role)
		}
		s.voidInvites(id)
		return s.setMember(id, role, ns.node.Now().Unix())
	})
}
