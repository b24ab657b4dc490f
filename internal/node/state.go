package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
)

// StateFormat is that of a state's encoding.
const StateFormat = 1

// State is what a node keeps of a namespace apart from its records, its secret and
// its control namespace. It has the namespace's name here, and what this node alone
// has to know. It is durable before any decision rests on it.
//
// It is one file, since some facts change together: a layout, and that its founders are whole;
// that a shard is dropped, and up to when its promises bind the next set of it; the ids of the
// change logs, and that the sets recover. Each owner changes its own part, under its own lock.
type State struct {
	Format  int    `cbor:"1,keyasint"`
	Name    string `cbor:"2,keyasint"`
	Creator []byte `cbor:"3,keyasint"` // a part of what the namespace's id is made of
	// Record is the part of the namespace's group.
	membership.Record
	// Watermark is what is durable of that of the set.
	Watermark watermark.State `cbor:"7,keyasint"`
	// Lost is what damage to the store has cost, until that is accepted; nil: nothing.
	Lost *Lost `cbor:"9,keyasint,omitempty"`
	// Paused: the namespace takes part in no syncs.
	Paused bool `cbor:"10,keyasint,omitempty"`
	// Logs are the ids of the change logs, of the data and of the control
	// namespace, that this state last went with. It is empty before the first
	// opening.
	Logs []byte `cbor:"11,keyasint,omitempty"`
	// Placement is how the namespace is cut into shards, in the bytes of package placement;
	// empty: it is not.
	Placement []byte `cbor:"12,keyasint,omitempty"`
	// Shards is what this node keeps of each shard that it holds, ascending. In a
	// namespace that is cut into shards, Watermark is what that of a shard begins
	// with, and Logs has the control namespace's alone.
	Shards []ShardState `cbor:"13,keyasint,omitempty"`
	// Layout is the layout by which the node goes; nil: it knows none.
	Layout *storedLayout `cbor:"14,keyasint,omitempty"`
}

// Root is what the namespace's id is made of beside its secret: its creator and its
// placement.
func (s *State) Root() []byte { return slices.Concat(s.Creator, s.Placement) }

// Found makes the state of a namespace with that secret, which this node creates
// and is the first admin of.
func (n *Node) Found(secret dbadapter.Secret, name string, p Policy) (*State, error) {
	return n.FoundShards(secret, name, p, nil)
}

// FoundShards is Found for a namespace that a rule cuts into shards; nil: it is not cut.
func (n *Node) FoundShards(secret dbadapter.Secret, name string, p Policy, rule *placement.Rule) (*State, error) {
	s := &State{Format: StateFormat, Name: name, Creator: []byte(n.ID)}
	if rule != nil {
		if n.NoHost {
			return nil, fmt.Errorf("%w: a namespace of shards needs a host, and this node is started with --no-host: create it at a node that is a host", ErrInvalid)
		}
		var err error
		if s.Placement, err = rule.Value(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if err := membership.CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if p.MaxSkew < 0 {
		return nil, fmt.Errorf("%w: the skew %s is negative", ErrInvalid, p.MaxSkew)
	}
	if p.MaxSkew == 0 {
		p.MaxSkew = DefaultMaxSkew
	}
	id := dbadapter.NamespaceIDOf(secret, s.Root())
	at := n.Now()
	if err := hlc.Check(at, at, p.MaxSkew); err != nil {
		return nil, fmt.Errorf("%w: this machine's clock is wrong: set it", err)
	}
	founding, err := n.founding(id, s, p)
	if err != nil {
		return nil, err
	}
	s.Seeds = [][]byte{founding}
	return s, nil
}

// Encode is the state as a driver keeps it on disk: the first bytes of the SHA-256
// of its CBOR, and the CBOR. So a flipped bit gives no member another role.
func (s *State) Encode() ([]byte, error) {
	b, err := cbor.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return append(sum[:stateSum:stateSum], b...), nil
}

// stateSum is how many bytes of a state's hash stand before it.
const stateSum = 8

// DecodeState reads what Encode wrote. Bytes that are not a valid state are
// ErrCorrupt, another format is dbadapter.ErrFormat.
func DecodeState(b []byte) (*State, error) {
	if len(b) < stateSum {
		return nil, fmt.Errorf("%w: it has %d bytes", dbadapter.ErrCorrupt, len(b))
	}
	head, b := b[:stateSum], b[stateSum:]
	if sum := sha256.Sum256(b); !bytes.Equal(head, sum[:stateSum]) {
		return nil, fmt.Errorf("%w: its checksum does not match", dbadapter.ErrCorrupt)
	}
	s := new(State)
	if err := roster.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %v", dbadapter.ErrCorrupt, err)
	}
	if s.Format != StateFormat {
		return nil, fmt.Errorf("%w: it has format %d; this program reads %d: export the namespace with the program that wrote it, and import it into a new one", dbadapter.ErrFormat, s.Format, StateFormat)
	}
	switch err := s.validate(); {
	case errors.Is(err, placement.ErrWriter):
		return nil, fmt.Errorf("%w: %w", dbadapter.ErrFormat, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %v", dbadapter.ErrCorrupt, err)
	}
	return s, nil
}

func (s *State) validate() error {
	if err := membership.CheckName(s.Name); err != nil {
		return err
	}
	if _, err := ID(s.Creator).PublicKey(); err != nil {
		return fmt.Errorf("the creator: %w", err)
	}
	if err := s.Record.Validate(); err != nil {
		return err
	}
	if err := s.Watermark.Validate(); err != nil {
		return err
	}
	if err := s.validateShards(); err != nil {
		return err
	}
	return s.Lost.validate()
}

// clone copies the state so deeply that changing lists and entries of the copy
// leaves s alone.
func (s *State) clone() *State {
	c := *s
	c.Record = s.Record.Clone()
	c.Watermark = s.Watermark.Clone()
	c.Lost = s.Lost.clone()
	c.Shards = slices.Clone(s.Shards)
	for i := range c.Shards {
		c.Shards[i].Watermark = c.Shards[i].Watermark.Clone()
	}
	return &c
}
