package peer

import (
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/dbadapter"
)

// ticketPrefix begins every ticket; its digit is the version of what follows.
const ticketPrefix = "syncd1"

// ticketText is base32 in small letters without padding: a ticket survives
// being pasted, folded to capitals, or selected with a double click.
var ticketText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ticket is an invitation: where and who the inviter is, which namespace, and
// the token that makes the bearer a member.
type ticket struct {
	inviter   ID
	addrs     []ma.Multiaddr
	namespace dbadapter.NamespaceID
	name      string
	token     [tokenSize]byte
	role      Role
	expires   time.Time
}

// ticketFields is a ticket on the wire.
type ticketFields struct {
	Inviter   []byte   `cbor:"1,keyasint"`
	Addrs     [][]byte `cbor:"2,keyasint"`
	Namespace []byte   `cbor:"3,keyasint"`
	Name      string   `cbor:"4,keyasint"`
	Token     []byte   `cbor:"5,keyasint"`
	Role      Role     `cbor:"6,keyasint"`
	Expires   int64    `cbor:"7,keyasint"` // Unix seconds
}

func (t *ticket) encode() (string, error) {
	b, err := cbor.Marshal(ticketFields{
		Inviter: []byte(t.inviter), Addrs: addrBytes(t.addrs), Namespace: t.namespace[:], Name: t.name,
		Token: t.token[:], Role: t.role, Expires: t.expires.Unix(),
	})
	if err != nil {
		return "", err
	}
	return ticketPrefix + ticketText.EncodeToString(b), nil
}

// parseTicket reads a ticket. It says nothing of its content in an error: a
// ticket is a secret, and errors end in logs.
func parseTicket(s string) (*ticket, error) {
	t, err := readTicket(strings.ToLower(strings.TrimSpace(s)))
	if err != nil {
		return nil, fmt.Errorf("%w: this is not a ticket, or a part of it is missing (%w); copy it whole, from %q on", ErrInvalid, err, ticketPrefix)
	}
	return t, nil
}

func readTicket(s string) (*ticket, error) {
	text, ok := strings.CutPrefix(s, ticketPrefix)
	if !ok {
		return nil, fmt.Errorf("it does not begin with %q", ticketPrefix)
	}
	if len(text) > maxTicket {
		return nil, fmt.Errorf("it has more than %d characters", maxTicket)
	}
	b, err := ticketText.DecodeString(text)
	if err != nil {
		return nil, errors.New("not base32")
	}
	var f ticketFields
	if err := strict.Unmarshal(b, &f); err != nil {
		return nil, errors.New("malformed")
	}
	t := &ticket{addrs: parseAddrs(f.Addrs), name: f.Name, role: f.Role, expires: time.Unix(f.Expires, 0).UTC()}
	if t.inviter, err = peer.IDFromBytes(f.Inviter); err != nil {
		return nil, errors.New("no inviter")
	}
	if _, err := publicKey(t.inviter); err != nil {
		return nil, err
	}
	switch {
	case len(f.Namespace) != len(t.namespace) || len(f.Token) != tokenSize:
		return nil, errors.New("a field of the wrong length")
	case !f.Role.valid():
		return nil, errors.New("no role")
	case checkName(f.Name) != nil:
		return nil, errors.New("no name")
	case len(t.addrs) == 0:
		return nil, errors.New("no address")
	}
	t.namespace = dbadapter.NamespaceID(f.Namespace)
	t.token = [tokenSize]byte(f.Token)
	return t, nil
}
