package roster

import "fmt"

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
