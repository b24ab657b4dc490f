package node

import (
	"time"

	"github.com/syncd-io/syncd/internal/syncing"
)

// What tests of package ask need of the machines: they stand in package node_test.

// Machine is a node in memory.
type Machine struct{ *machine }

// NewMachine makes one.
func NewMachine(seed int) Machine { return Machine{newMachine(seed)} }

// Create makes a namespace.
func (m Machine) Create(name string, p Policy) *Namespace { return m.create(name, p) }

// Join makes the machine a member of another one's namespace.
func (m Machine) Join(at Machine, ticket string) (*Namespace, error) {
	return m.join(at.machine, ticket)
}

// SyncWith syncs with another machine.
func (m Machine) SyncWith(ns *Namespace, other Machine, a syncing.Ask) error {
	_, _, err := m.sync(ns, other.machine, a)
	return err
}

// Pass sets the machine's clock.
func (m Machine) Pass(d time.Duration) { m.clock = m.clock.Add(d) }

// IDOfSeed is the id of the machine of a seed.
func IDOfSeed(seed int) ID { return idOf(seed) }

// What writes to a namespace, and reads it.
var (
	Put, Get          = put, get
	Invite, Collect   = invite, collect
	WantErr, Succeeds = wantErr, succeeds
)
