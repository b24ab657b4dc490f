package roster

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mr-tron/base58"

	"github.com/syncd-io/syncd/dbadapter"
)

// ID names a node: the binary form of a libp2p peer id that holds an Ed25519
// public key. Connections authenticate it, and it orders two nodes that call
// each other at once.
type ID string

// idPrefix begins every such id. The id is an identity multihash of 36 bytes, a
// protobuf message with the key type 1 (Ed25519) and a key of 32 bytes.
const idPrefix = "\x00\x24\x08\x01\x12\x20"

// multihashHead is the part of idPrefix that is not of the protobuf message.
const multihashHead = 2

// IDOf is the id of the node with that public key.
func IDOf(key ed25519.PublicKey) ID { return ID(idPrefix + string(key)) }

// PublicKey is the key that the id holds.
func (id ID) PublicKey() (ed25519.PublicKey, error) {
	if len(id) != len(idPrefix)+ed25519.PublicKeySize || id[:len(idPrefix)] != idPrefix {
		return nil, fmt.Errorf("peer %s: %w", id, errNotEd25519)
	}
	return ed25519.PublicKey(id[len(idPrefix):]), nil
}

var errNotEd25519 = errors.New("not the id of an Ed25519 key")

// MarshalBinary gives the bytes of the id, which are its encoding in CBOR.
func (id ID) MarshalBinary() ([]byte, error) { return []byte(id), nil }

// UnmarshalBinary takes any bytes; PublicKey tells whether they are an id.
func (id *ID) UnmarshalBinary(b []byte) error {
	*id = ID(b)
	return nil
}

// Writer is the id under which versions name the node. It is the first 8 bytes,
// big-endian, of the SHA-256 of the protobuf message that the id holds.
func (id ID) Writer() (dbadapter.WriterID, error) {
	if _, err := id.PublicKey(); err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte(id[multihashHead:]))
	return dbadapter.WriterID(binary.BigEndian.Uint64(sum[:])), nil
}

// String is the text form (12D3Koo…).
func (id ID) String() string { return base58.Encode([]byte(id)) }

// Role is what a member may do. Each role may do what those before it may.
type Role uint8

// The roles of a member.
const (
	RoleRead  Role = iota + 1 // receives the records
	RoleWrite                 // writes records that the other members accept
	RoleAdmin                 // invites members, and changes and removes those that it may
)

var roleNames = [...]string{RoleRead: "read", RoleWrite: "write", RoleAdmin: "admin"}

// String is the role's name, "read", "write" or "admin".
func (r Role) String() string {
	if r.Valid() {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return r >= RoleRead && r <= RoleAdmin }

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	for r := RoleRead; r <= RoleAdmin; r++ {
		if roleNames[r] == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q: want read, write or admin", s)
}
