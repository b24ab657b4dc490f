package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/roster"
)

// JoinVersion is the first field of both messages of the join protocol.
const JoinVersion = 1

// JoinRequest presents a ticket's token to its inviter.
type JoinRequest struct {
	Version   int      `cbor:"1,keyasint"`
	Namespace []byte   `cbor:"2,keyasint"`
	Token     []byte   `cbor:"3,keyasint"`
	Addrs     [][]byte `cbor:"4,keyasint"` // where the joiner can be dialled
}

// JoinReply carries either Denied, a text for people, or the namespace.
type JoinReply struct {
	Version    int         `cbor:"1,keyasint"`
	Denied     string      `cbor:"2,keyasint"`
	Secret     []byte      `cbor:"3,keyasint"`
	Creator    []byte      `cbor:"4,keyasint"`
	Statements [][]byte    `cbor:"5,keyasint"` // of the list of members, without those that are void
	Addresses  []Addresses `cbor:"6,keyasint"`
	// Pledged is what the inviter has promised, and members may have collected up
	// to: the newcomer writes nothing up to that.
	Pledged dbadapter.Timestamp `cbor:"7,keyasint"`
	// Placement is how the namespace is cut into shards; empty: it is one.
	Placement []byte `cbor:"8,keyasint,omitempty"`
}

// RequestJoin is the message that redeems a ticket. addrs are where this node
// can be dialled.
func RequestJoin(self roster.ID, t *Ticket, addrs [][]byte) ([]byte, error) {
	if t.Inviter == self {
		return nil, fmt.Errorf("%w: this node made the ticket; use it on another", ErrDenied)
	}
	return cbor.Marshal(JoinRequest{JoinVersion, t.Namespace[:], t.Token[:], addrs})
}

// Handover is what the inviter of a node knows of a namespace beside the list of members.
type Handover struct {
	Secret dbadapter.Secret
	// Pledged is what the inviter has promised, and members may have collected up
	// to: the newcomer writes nothing up to that.
	Pledged dbadapter.Timestamp
	// Addresses are where the members can be dialled.
	Addresses []Addresses
}

// AnswerJoin decides upon a request of a peer, and writes the reply. An error says
// why the peer was turned down, and is no reason not to send the reply.
// The peer says in joiner where it can be dialled. group is that of a namespace; nil: it is not
// here. handover is called once the peer is a member.
func AnswerJoin(ctx context.Context, remote roster.ID, request []byte, group func(dbadapter.NamespaceID) *Group, handover func() Handover) (reply []byte, joiner [][]byte, err error) {
	var q JoinRequest
	if err := roster.Unmarshal(request, &q); err != nil {
		return nil, nil, fmt.Errorf("malformed message: %w", err)
	}
	// A peer that speaks another version reads this node's in the reply, and no text.
	r := &JoinReply{Version: JoinVersion}
	admit := func() error {
		if q.Version != JoinVersion {
			return fmt.Errorf("it speaks version %d of the join protocol", q.Version)
		}
		if len(q.Namespace) != len(dbadapter.NamespaceID{}) {
			return ErrTicketUnknown
		}
		g := group(dbadapter.NamespaceID(q.Namespace))
		if g == nil {
			return ErrTicketUnknown
		}
		if err := g.Redeem(ctx, remote, q.Token); errors.Is(err, dbadapter.ErrClosed) {
			return ErrTicketUnknown // the namespace is being dropped
		} else if err != nil {
			return err
		}
		r.hand(g, handover())
		return nil
	}
	if err = admit(); err != nil && q.Version == JoinVersion {
		r.Denied = "this node failed; see its log"
		if errors.Is(err, ErrDenied) || errors.Is(err, dbadapter.ErrLimit) {
			r.Denied = err.Error()
		}
	}
	reply, failed := cbor.Marshal(r)
	return reply, q.Addrs, errors.Join(err, failed)
}

// hand hands a namespace over.
func (r *JoinReply) hand(g *Group, h Handover) {
	r.Secret, r.Creator, r.Statements, r.Pledged, r.Addresses = h.Secret[:], []byte(g.c.Creator), g.Core(), h.Pledged, h.Addresses
	if g.c.Placement != "" {
		r.Placement = []byte(g.c.Placement)
	}
}

// Joined is what a reply to a join hands over.
type Joined struct {
	Handover
	Creator   roster.ID
	Placement []byte   // nil: the namespace is one set
	Seeds     [][]byte // the statements of the list of members
}

// ReadJoin checks what the inviter of a ticket replied. The configuration has who this node is, its
// clock and its check of signatures.
func ReadJoin(c Config, t *Ticket, reply []byte) (*Joined, error) {
	var r JoinReply
	if err := roster.Unmarshal(reply, &r); err != nil {
		return nil, fmt.Errorf("malformed message: %w", err)
	}
	switch {
	case r.Denied != "":
		return nil, fmt.Errorf("%w: it says: %.200q", ErrDenied, strings.TrimPrefix(r.Denied, ErrDenied.Error()+": "))
	case r.Version != JoinVersion:
		return nil, fmt.Errorf("it speaks version %d of the protocol, this node version %d; upgrade the older", r.Version, JoinVersion)
	case len(r.Secret) != len(dbadapter.Secret{}) || dbadapter.NamespaceIDOf(dbadapter.Secret(r.Secret), slices.Concat(r.Creator, r.Placement)) != t.Namespace:
		return nil, errors.New("it handed over another namespace than the ticket's; do not trust it")
	}
	j := &Joined{Handover: Handover{Secret: dbadapter.Secret(r.Secret), Pledged: r.Pledged}, Creator: roster.ID(r.Creator), Placement: r.Placement}
	if _, err := j.Creator.PublicKey(); err != nil {
		return nil, fmt.Errorf("it handed over a faulty namespace: the creator: %w", err)
	}
	c.Namespace, c.Creator, c.Placement = t.Namespace, j.Creator, string(j.Placement)
	set := c.newSet()
	// What the set does not take says nothing of the inviter: a node has it from
	// others, and sets have bounds.
	set.Load(slices.Values(r.Statements))
	j.Seeds = values(set)
	members := set.List()
	if !members.Has(c.Self, roster.RoleRead) || !members.Has(t.Inviter, roster.RoleAdmin) {
		return nil, errors.New("it handed over a list of members without this node, or without itself as an admin")
	}
	if err := hlc.Check(r.Pledged.Time(), c.Now(), members.Policy().MaxSkew); r.Pledged != 0 && err != nil {
		return nil, fmt.Errorf("what the inviter has promised is from the future; is this machine's clock right, and the inviter's? %w", err)
	}
	j.Addresses = slices.DeleteFunc(r.Addresses, func(a Addresses) bool { return a.ID == c.Self || !members.Has(a.ID, roster.RoleRead) })
	return j, nil
}
