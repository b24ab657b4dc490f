package roster

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// Hash names a statement: the SHA-256 of its value.
type Hash [sha256.Size]byte

// HashOf is the hash of a statement's value.
func HashOf(value []byte) Hash { return sha256.Sum256(value) }

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

func (h Hash) compare(o Hash) int { return bytes.Compare(h[:], o[:]) }

// Kind is what a statement does.
type Kind uint8

// The kinds of statements.
const (
	Found  Kind = iota + 1 // makes the creator the first admin and fixes the policy
	Grant                  // gives the subject a role
	Remove                 // takes the subject's role away
	Expire                 // writes down that the subject's role has expired
	Lapse                  // goes on without waiting for the subject
	Return                 // ends the author's own lapse
	Layout                 // says which hosts each shard has, by a table
)

var kindNames = [...]string{Found: "found", Grant: "grant", Remove: "remove", Expire: "expire", Lapse: "lapse", Return: "return", Layout: "layout"}

// String is the kind's name in small letters.
func (k Kind) String() string {
	if k >= Found && k <= Layout {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Policy is what the members of a namespace agree on. It is fixed when the
// namespace is made.
type Policy struct {
	_ struct{} `cbor:",toarray"`
	// Unsigned turns signatures off, their making and their checking. Records
	// are then accepted from members that may write themselves, only.
	Unsigned bool
	// MaxSkew is how far a version may be ahead of the receiver's clock.
	MaxSkew time.Duration
}

// Statement is one line of the list, as its author signed it. Its encoding is CBOR, in
// which a field that is zero is left out.
type Statement struct {
	Kind    Kind                `cbor:"1,keyasint"`
	Author  ID                  `cbor:"2,keyasint"`
	At      dbadapter.Timestamp `cbor:"3,keyasint"`           // when, by the author's clock: a claim
	Heads   []Hash              `cbor:"4,keyasint,omitempty"` // what the author had seen, with all that these name
	Subject ID                  `cbor:"5,keyasint,omitzero"`  // the member that it is about; not in Found and Layout
	Role    Role                `cbor:"6,keyasint,omitzero"`  // Grant only
	Expires dbadapter.Timestamp `cbor:"7,keyasint,omitzero"`  // Grant only: the last instant of the role; 0 never
	Since   dbadapter.Timestamp `cbor:"8,keyasint,omitzero"`  // Grant only: from when on versions count; 0 the rule
	Policy  *Policy             `cbor:"9,keyasint,omitempty"` // Found only
	// Placement is how the namespace is cut into shards, as package placement writes it.
	// Found only; empty: the namespace is one shard. Its id is made of it.
	Placement cbor.ByteString `cbor:"10,keyasint,omitzero"`
	Epoch     uint64          `cbor:"11,keyasint,omitzero"` // Layout only: one more than the greatest of the layouts it had seen
	Table     Table           `cbor:"12,keyasint,omitzero"` // Layout only
}

// Table names the table of a layout: the SHA-256 of its bytes. These can be too many for
// a statement, and are not kept for ever, as statements are.
type Table [sha256.Size]byte

// TableOf is the name of a table.
func TableOf(table []byte) Table { return sha256.Sum256(table) }

// String is the name in hexadecimal.
func (t Table) String() string { return hex.EncodeToString(t[:]) }

// signedDomain keeps a statement's signature from meaning anything elsewhere.
const signedDomain = "syncd statement 1\x00"

// encoding makes the one encoding that a statement has, and decoding reads it.
var (
	encoding = func() cbor.EncMode {
		mode, err := cbor.CoreDetEncOptions().EncMode()
		if err != nil {
			panic(err) // the options are constants
		}
		return mode
	}()
	decoding = mode(cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxArrayElements: MaxHeads, MaxMapPairs: 16, MaxNestedLevels: 4})
	strict   = mode(cbor.DecOptions{MaxArrayElements: 1 << 17, MaxMapPairs: 1 << 10, MaxNestedLevels: 8})
)

// mode refuses what this project does not write: tags, lengths left open, keys that are
// there twice.
func mode(o cbor.DecOptions) cbor.DecMode {
	o.DupMapKey, o.IndefLength, o.TagsMd = cbor.DupMapKeyEnforcedAPF, cbor.IndefLengthForbidden, cbor.TagsForbidden
	mode, err := o.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}

// Unmarshal reads CBOR of members other than statements. It refuses what this project does
// not write, and leaves out fields that it does not know.
func Unmarshal(b []byte, into any) error { return strict.Unmarshal(b, into) }

// ByteString is the CBOR byte string b. An array of numbers, which the decoder takes for one, is refused.
func ByteString(b []byte) (octets []byte, err error) {
	if len(b) == 0 || b[0]>>5 != 2 {
		return nil, errors.New("no byte string")
	}
	err = strict.Unmarshal(b, &octets)
	return octets, err
}

// signedBytes is what an author signs.
func signedBytes(ns dbadapter.NamespaceID, encoded []byte) []byte {
	b := make([]byte, 0, len(signedDomain)+len(ns)+len(encoded))
	b = append(b, signedDomain...)
	b = append(b, ns[:]...)
	return append(b, encoded...)
}

// Sign is the statement's value: its body and the author's signature. sign is
// given the bytes to sign.
func (s *Statement) Sign(ns dbadapter.NamespaceID, sign func(message []byte) ([]byte, error)) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	encoded, err := encoding.Marshal(s)
	if err != nil {
		return nil, err
	}
	signature, err := sign(signedBytes(ns, encoded))
	if err != nil {
		return nil, fmt.Errorf("sign a statement: %w", err)
	}
	if len(signature) != ed25519.SignatureSize {
		return nil, fmt.Errorf("sign a statement: the signature has %d bytes, not %d", len(signature), ed25519.SignatureSize)
	}
	return append(encoded, signature...), nil
}

// Verify reports whether key made the signature of message.
type Verify func(key ed25519.PublicKey, message, signature []byte) bool

// Parse reads a statement of a namespace and checks its form and its signature.
// The error is ErrMalformed. Whether the statement counts is the set's business.
func Parse(ns dbadapter.NamespaceID, value []byte, verify Verify) (*Statement, error) {
	s, err := parse(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	key, err := s.Author.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("%w: its author: %w", ErrMalformed, err)
	}
	encoded, signature := value[:len(value)-ed25519.SignatureSize], value[len(value)-ed25519.SignatureSize:]
	if !verify(key, signedBytes(ns, encoded), signature) {
		return nil, fmt.Errorf("%w: the signature is not by its author %s, or for another namespace", ErrMalformed, s.Author)
	}
	return s, nil
}

// parse reads the body and checks its form.
func parse(value []byte) (*Statement, error) {
	if len(value) <= ed25519.SignatureSize || len(value) > MaxValue {
		return nil, fmt.Errorf("it has %d bytes; want %d to %d", len(value), ed25519.SignatureSize+1, MaxValue)
	}
	encoded := value[:len(value)-ed25519.SignatureSize]
	s := new(Statement)
	if err := decoding.Unmarshal(encoded, s); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	// One statement has one encoding; otherwise a node that carries it could make
	// others of it. A hash of another length is not encoded as it was read, either.
	if again, err := encoding.Marshal(s); err != nil || !bytes.Equal(again, encoded) {
		return nil, errors.New("it is not encoded deterministically (RFC 8949, section 4.2)")
	}
	return s, nil
}

// validate checks the form: what each kind must have, and must not.
func (s *Statement) validate() error {
	if _, err := s.Author.PublicKey(); err != nil {
		return fmt.Errorf("its author: %w", err)
	}
	if len(s.Heads) > MaxHeads {
		return fmt.Errorf("it names %d heads; at most %d", len(s.Heads), MaxHeads)
	}
	for i, h := range s.Heads {
		if i > 0 && bytes.Compare(s.Heads[i-1][:], h[:]) >= 0 {
			return errors.New("its heads are not sorted, or one stands there twice")
		}
	}
	switch {
	case s.Kind < Found || s.Kind > Layout:
		return fmt.Errorf("its kind %d is unknown: use a newer program", s.Kind)
	case s.Kind != Layout && (s.Epoch != 0 || s.Table != Table{}):
		return fmt.Errorf("a %s has no epoch and no table", s.Kind)
	case s.Kind == Found:
		return s.validateFounding()
	case len(s.Heads) == 0:
		return fmt.Errorf("a %s names no head", s.Kind)
	case s.Policy != nil || s.Placement != "":
		return fmt.Errorf("a %s has no policy and no placement", s.Kind)
	case s.Kind == Layout:
		return s.validateLayout()
	}
	return s.validateOfMember()
}

func (s *Statement) validateFounding() error {
	switch {
	case len(s.Heads) > 0 || s.Subject != "" || s.Role != 0 || s.Expires != 0 || s.Since != 0:
		return errors.New("a founding statement has an author, a time, a policy and a placement only")
	case s.Policy == nil || s.Policy.MaxSkew <= 0:
		return errors.New("the policy has no skew")
	case len(s.Placement) > MaxPlacement:
		return fmt.Errorf("the placement has %d bytes; at most %d", len(s.Placement), MaxPlacement)
	}
	return nil
}

func (s *Statement) validateLayout() error {
	switch {
	case s.Subject != "" || s.Role != 0 || s.Expires != 0 || s.Since != 0:
		return errors.New("a layout has an author, a time, heads, an epoch and a table only")
	case s.Epoch == 0 || s.Table == Table{}:
		return errors.New("a layout names no epoch, or no table")
	}
	return nil
}

// validateOfMember checks a statement about a member.
func (s *Statement) validateOfMember() error {
	if _, err := s.Subject.PublicKey(); err != nil {
		return fmt.Errorf("its subject: %w", err)
	}
	own := s.Subject == s.Author
	switch {
	case s.Kind == Grant && !s.Role.Valid():
		return fmt.Errorf("there is no %s", s.Role)
	case s.Kind == Grant && own && s.Role == RoleAdmin:
		return errors.New("an admin cannot make itself an admin")
	case s.Kind == Grant && s.Expires != 0 && s.Expires <= s.At:
		return errors.New("the role expires before it is granted")
	case s.Kind != Grant && (s.Role != 0 || s.Expires != 0 || s.Since != 0):
		return fmt.Errorf("a %s has no role, expiry or start", s.Kind)
	case s.Kind == Expire && own:
		return errors.New("an admin does not write down its own expiry")
	case s.Kind == Return && !own:
		return errors.New("a return is the member's own")
	}
	return nil
}

// ofItself reports whether the statement takes no admin: a member leaves, or
// returns.
func (s *Statement) ofItself() bool {
	return s.Kind == Return || s.Kind == Remove && s.Author == s.Subject
}

// Errors that callers branch on, with errors.Is, besides dbadapter.ErrLimit.
var (
	// ErrMalformed: the bytes are no statement of this namespace, or the
	// signature is wrong.
	ErrMalformed = errors.New("malformed statement")
	// ErrRefused: by what the statement had seen, its author could not make it.
	// It is refused for ever, on each node.
	ErrRefused = errors.New("statement refused")
)
