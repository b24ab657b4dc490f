package membership

import (
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// TicketPrefix begins every ticket; its digit is the version of what follows.
const TicketPrefix = "syncd1"

// ticketText is base32 in small letters without padding: a ticket survives
// being pasted, folded to capitals, or selected with a double click.
var ticketText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Ticket is an invitation: the inviter and where it is, the namespace, and the
// token that makes the bearer a member.
type Ticket struct {
	Inviter   roster.ID
	Addrs     [][]byte // multiaddrs in binary, without the inviter's id
	Namespace dbadapter.NamespaceID
	Name      string
	Token     [tokenSize]byte
	Role      roster.Role
	Expires   time.Time
}

// ticketFields is a ticket on the wire.
type ticketFields struct {
	Inviter   []byte      `cbor:"1,keyasint"`
	Addrs     [][]byte    `cbor:"2,keyasint"`
	Namespace []byte      `cbor:"3,keyasint"`
	Name      string      `cbor:"4,keyasint"`
	Token     []byte      `cbor:"5,keyasint"`
	Role      roster.Role `cbor:"6,keyasint"`
	Expires   int64       `cbor:"7,keyasint"` // Unix seconds
}

// Encode is the text of the ticket.
func (t *Ticket) Encode() (string, error) {
	b, err := cbor.Marshal(ticketFields{
		Inviter: []byte(t.Inviter), Addrs: t.Addrs, Namespace: t.Namespace[:], Name: t.Name,
		Token: t.Token[:], Role: t.Role, Expires: t.Expires.Unix(),
	})
	if err != nil {
		return "", err
	}
	return TicketPrefix + ticketText.EncodeToString(b), nil
}

// ParseTicket reads a ticket. An error does not quote the ticket: a ticket is a
// secret, and errors end in logs.
func ParseTicket(s string) (*Ticket, error) {
	t, err := readTicket(strings.ToLower(strings.TrimSpace(s)))
	if err != nil {
		return nil, fmt.Errorf("%w: this is not a ticket, or a part of it is missing (%w); copy it whole, from %q on", ErrInvalid, err, TicketPrefix)
	}
	return t, nil
}

func readTicket(s string) (*Ticket, error) {
	text, ok := strings.CutPrefix(s, TicketPrefix)
	if !ok {
		return nil, fmt.Errorf("it does not begin with %q", TicketPrefix)
	}
	if len(text) > maxTicket {
		return nil, fmt.Errorf("it has more than %d characters", maxTicket)
	}
	b, err := ticketText.DecodeString(text)
	if err != nil {
		return nil, errors.New("not base32")
	}
	var f ticketFields
	if err := roster.Unmarshal(b, &f); err != nil {
		return nil, errors.New("malformed")
	}
	t := &Ticket{Inviter: roster.ID(f.Inviter), Addrs: f.Addrs, Name: f.Name, Role: f.Role, Expires: time.Unix(f.Expires, 0).UTC()}
	if _, err := t.Inviter.PublicKey(); err != nil {
		return nil, errors.New("no inviter")
	}
	switch {
	case len(f.Namespace) != len(t.Namespace) || len(f.Token) != tokenSize:
		return nil, errors.New("a field of the wrong length")
	case !f.Role.Valid():
		return nil, errors.New("no role")
	case CheckName(f.Name) != nil:
		return nil, errors.New("no name")
	case len(t.Addrs) == 0:
		return nil, errors.New("no address")
	}
	t.Namespace = dbadapter.NamespaceID(f.Namespace)
	t.Token = [tokenSize]byte(f.Token)
	return t, nil
}
