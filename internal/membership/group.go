package membership

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// Errors that callers branch on, with errors.Is.
var (
	// ErrInvalid: an argument is malformed: a ticket, a name.
	ErrInvalid = errors.New("invalid input")
	// ErrDenied: one of the two is not a member with the role that this takes.
	ErrDenied = reconcile.ErrDenied
)

// Control is the control namespace of a group: its store, and this node's signatures there.
type Control interface {
	Hash(r dbadapter.Record) (dbadapter.Hashed, error)
	Get(key []byte) (dbadapter.Record, error) // dbadapter.ErrNotFound: no record has the key
	OfKind(ctx context.Context, kind byte) iter.Seq2[dbadapter.Hashed, error]
	Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
	Sign(writes []dbadapter.Write) error
	Signed(by roster.ID, r *dbadapter.Record) bool
}

// Observer follows the changes of a group. The group's lock is held meanwhile.
type Observer interface {
	// Relisted follows another list of members.
	Relisted() error
	// Removed follows what this node has heard of its own removal, under the same list.
	Removed() error
	// Said follows records of the control namespace that a peer has brought, and which are no
	// statements.
	Said(records []*dbadapter.Record) error
	// Declared follows a statement of this node's.
	Declared()
}

// Config is what a node gives a group.
type Config struct {
	Self      roster.ID
	Namespace dbadapter.NamespaceID
	Creator   roster.ID
	Placement string // how the namespace is cut into shards; empty: it is not
	Name      string // of the namespace, on this node
	Control   Control
	Observer  Observer
	// Kinds are the kinds of records in the control namespace, apart from statements and addresses.
	Kinds map[byte]Kind
	// Clock is the namespace's. Version is the next version of this node's.
	Clock   *hlc.Clock
	Version func() (dbadapter.Version, error)
	Now     func() time.Time
	Random  func(b []byte) // fills a ticket's token
	Sign    func(message []byte) ([]byte, error)
	Verify  func(key ed25519.PublicKey, message, signature []byte) bool
	// Save makes a record durable before it returns.
	Save func(*Record) error
	// KeepList, if not nil, keeps a copy of all statements. The calls follow one another.
	KeepList func(statements [][]byte)
	// Refused, if not nil, hears why a record of a peer was refused.
	Refused func(error)
}

// Record is what this node alone knows of the members. It is durable before a decision rests on it.
// Its numbers in CBOR leave room for what a node keeps in the same file.
type Record struct {
	Invites []Invite `cbor:"4,keyasint"`
	// Seeds are the statements that the namespace was opened with first. The opening
	// puts them into the control namespace; the first change drops them.
	Seeds [][]byte `cbor:"5,keyasint"`
	// Removed is the statement by which, as a peer has told, this node was removed,
	// while the list here does not hold it.
	Removed []byte `cbor:"6,keyasint"`
}

// Validate checks a record that was read.
func (r *Record) Validate() error {
	if len(r.Invites) > MaxInvites {
		return errors.New("too many tickets")
	}
	for i := range r.Invites {
		if err := r.Invites[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// Clone copies the record so deeply that changing lists and entries of the copy leaves r alone.
func (r *Record) Clone() Record {
	c := *r
	c.Invites = slices.Clone(r.Invites)
	for i := range c.Invites {
		c.Invites[i].UsedBy = slices.Clone(c.Invites[i].UsedBy)
	}
	return c
}

// Group is the members of one namespace, as this node knows them. Its methods may be
// called from several goroutines.
type Group struct {
	c Config
	// mu is held while the list, the record or the control namespace changes. It guards
	// what follows.
	mu      sync.Mutex
	roster  *roster.Set
	listed  time.Time     // when the list last changed
	dropped roster.Digest // of the list under which what former members said was dropped last
	over    bool          // the namespace is being dropped: nothing is saved any more
	// members is stored while mu is held.
	members atomic.Pointer[Members]
}

// New is a group whose list is to be read by ReadList, before anything else is asked of it.
func New(c Config) *Group {
	c.Kinds = maps.Collect(maps.All(c.Kinds))
	c.Kinds[KindAddresses] = Kind{By, func(r *dbadapter.Hashed) error { _, err := ReadAnnouncement(r.Value); return err }}
	return &Group{c: c}
}

// Members is the list of members as it is now.
func (g *Group) Members() *Members { return g.members.Load() }

// Held is a group whose lock is held: until Release, the list, the record and the control
// namespace change by its methods alone.
type Held struct{ g *Group }

// Hold takes the lock. Nothing else changes the group until Release.
func (g *Group) Hold() Held {
	g.mu.Lock()
	return Held{g}
}

// Release gives the lock back.
func (h Held) Release() { h.g.mu.Unlock() }

// End ends all changes of the group.
func (h Held) End() { h.g.over = true }

// Ended reports whether the group has ended.
func (h Held) Ended() bool { return h.g.over }

// Listed is when the list last changed; zero: not since it was opened.
func (h Held) Listed() time.Time { return h.g.listed }

// Statements are those of the list. They must not be changed.
func (h Held) Statements() *roster.Set { return h.g.roster }

// Take adds statements, durably. Each has an error of its own, if it was refused.
func (h Held) Take(ctx context.Context, values [][]byte) error {
	if h.g.over {
		return dbadapter.ErrClosed
	}
	_, refused, err := h.g.take(ctx, values)
	return errors.Join(err, errors.Join(refused...))
}

// update changes the record: fn edits a copy, which becomes durable before any
// decision rests on it. mu is held.
func (g *Group) update(fn func(r *Record) error) error {
	if g.over {
		return dbadapter.ErrClosed
	}
	members := g.Members()
	next := members.record.Clone()
	next.Seeds = nil // they are in the control namespace since the opening
	if err := fn(&next); err != nil {
		return err
	}
	if err := next.Validate(); err != nil {
		return err
	}
	if err := g.c.Save(&next); err != nil {
		return fmt.Errorf("save what is known of the members of %s: %w", members.name, err)
	}
	g.members.Store(&Members{members.List, members.name, &next})
	return nil
}

// parse reads a statement and checks its signature.
func (g *Group) parse(value []byte) (*roster.Statement, error) {
	return roster.Parse(g.c.Namespace, value, g.c.Verify)
}
