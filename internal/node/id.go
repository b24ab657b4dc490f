package node

import (
	"crypto/ed25519"

	"github.com/syncd-io/syncd/internal/roster"
)

// ID names a node: the binary form of a libp2p peer id that holds an Ed25519
// public key.
type ID = roster.ID

// IDOf is the id of the node with that public key.
func IDOf(key ed25519.PublicKey) ID { return roster.IDOf(key) }

// Role is what a member may do. Each role may do what those before it may.
type Role = roster.Role

// The roles of a member.
const (
	RoleRead  = roster.RoleRead
	RoleWrite = roster.RoleWrite
	RoleAdmin = roster.RoleAdmin
)

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) { return roster.ParseRole(s) }

// Policy is what the members of a namespace agree on.
type Policy = roster.Policy
