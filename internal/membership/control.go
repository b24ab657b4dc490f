package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A control namespace holds the statements of the list of members. Under further
// kinds of keys it holds what each member says of itself, one record of a key, and
// records that prove themselves. The node says what those are (Config.Kinds).
const (
	// KindStatement begins the key of a statement; its hash follows.
	KindStatement = 's'
	// KindAddresses begins the key of where a member can be dialled; its id follows.
	KindAddresses = 'a'
)

// Kind is a kind of records in the control namespace.
type Kind struct {
	// By is the member that a key names, which alone writes its record. nil: the records
	// prove themselves.
	By func(key []byte) (roster.ID, error)
	// Check says why a record must stay outside, or nil.
	Check func(r *dbadapter.Hashed) error
}

// Key is the key of what a member says of itself, under a kind that names no more than the member.
func Key(kind byte, id roster.ID) []byte { return append([]byte{kind}, id...) }

// By is the member that such a key names.
func By(key []byte) (roster.ID, error) { return roster.ID(key[1:]), nil }

// Admit is the one way in for control records from a peer. The peer need not
// be a member: what it brings is signed by members.
func (g *Group) Admit(ctx context.Context, from roster.ID, records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil, dbadapter.ErrClosed
	}
	verdicts := make([]reconcile.Verdict, len(records))
	refused := func(i int, why *refusals.Refusal) {
		verdicts[i].Reason = why.Reason
		if g.c.Refused != nil {
			g.c.Refused(fmt.Errorf("of the control namespace, from %s: %w", from, why.Err))
		}
	}
	if err := g.admitStatements(ctx, records, verdicts, refused); err != nil {
		return nil, err
	}
	// What members say of themselves is examined under the list as it is now.
	var writes []dbadapter.Write
	var places []int // of writes in verdicts
	members, now := g.Members(), g.c.Now()
	for i := range records {
		if records[i].Key[0] == KindStatement {
			continue
		}
		if why := g.examine(members, now, &records[i]); why != nil {
			refused(i, why)
			continue
		}
		writes, places = append(writes, dbadapter.Write{Record: records[i]}), append(places, i)
	}
	outcomes, err := g.c.Control.Apply(ctx, writes)
	if err != nil {
		return nil, err
	}
	var said []*dbadapter.Record
	for n, o := range outcomes {
		if o.Result == dbadapter.Full {
			refused(places[n], &refusals.Refusal{Reason: wire.ReasonFull, Err: refusals.ErrFull})
			continue
		}
		if verdicts[places[n]].Result = o.Result; o.Result == dbadapter.Applied {
			said = append(said, &writes[n].Record.Record)
		}
	}
	if len(said) == 0 {
		return verdicts, nil
	}
	return verdicts, g.c.Observer.Said(said)
}

// examine says why a record that is no statement must stay outside, or nil. What members say of
// themselves is signed in unsigned namespaces, too.
func (g *Group) examine(members *Members, now time.Time, r *dbadapter.Hashed) *refusals.Refusal {
	kind, known := g.c.Kinds[r.Key[0]]
	if !known {
		return refusals.Refuse(wire.ReasonWriter, "the key %.80q is not one of a control namespace", r.Key)
	}
	if kind.By == nil {
		if err := kind.Check(r); err != nil {
			return &refusals.Refusal{Reason: wire.ReasonWriter, Err: err}
		}
		return nil
	}
	by, err := kind.By(r.Key)
	m, member := members.Member(by)
	if err := hlc.Check(r.Version.Clock.Time(), now, members.Policy().MaxSkew); err != nil {
		return &refusals.Refusal{Reason: wire.ReasonClock, Err: err}
	}
	switch {
	case !member:
		return refusals.Refuse(wire.ReasonWriter, "%s is not a member", by)
	case err != nil:
		return &refusals.Refusal{Reason: wire.ReasonWriter, Err: err}
	case r.Version.Writer != m.Writer || r.Deleted:
		return refusals.Refuse(wire.ReasonWriter, "%s speaks for itself alone, and deletes nothing", m.ID)
	case !g.c.Control.Signed(m.ID, &r.Record):
		return refusals.Refuse(wire.ReasonSignature, "it is not signed by %s", m.ID)
	}
	if err := kind.Check(r); err != nil {
		return refusals.Refuse(wire.ReasonWriter, "what %s says of itself is malformed: %w", m.ID, err)
	}
	g.c.Clock.Observe(hlc.Timestamp(r.Version.Clock))
	return nil
}

// Put makes records durable that prove themselves.
func (h Held) Put(ctx context.Context, r dbadapter.Hashed) error {
	outcomes, err := h.g.c.Control.Apply(ctx, []dbadapter.Write{{Record: r}})
	if err == nil && outcomes[0].Result == dbadapter.Full {
		err = refusals.ErrFull
	}
	return err
}

// Drop takes records of a kind out of the control namespace, and returns them.
func (h Held) Drop(ctx context.Context, kind byte, drop func(r *dbadapter.Record) bool) (dropped []dbadapter.Write, err error) {
	for r, err := range h.g.c.Control.OfKind(ctx, kind) {
		if err != nil {
			return nil, err
		}
		if drop(&r.Record) {
			dropped = append(dropped, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		}
	}
	if len(dropped) > 0 {
		_, err = h.g.c.Control.Apply(ctx, dropped)
	}
	return dropped, err
}

// DropFormer takes out of the control namespace what former members have said of
// themselves, and returns who they are. A node that joins later declines it, so the two
// would never be equal. Each turn of theirs would begin with the control namespace.
// What this node has said it keeps: it may be a member again.
func (h Held) DropFormer(ctx context.Context) (former []roster.ID, err error) {
	g := h.g
	members := g.Members()
	if g.over || g.dropped == members.Digest() {
		return nil, nil
	}
	for _, kind := range slices.Sorted(maps.Keys(g.c.Kinds)) {
		by := g.c.Kinds[kind].By
		if by == nil {
			continue
		}
		dropped, failed := h.Drop(ctx, kind, func(r *dbadapter.Record) bool {
			id, _ := by(r.Key)
			return id != g.c.Self && !members.Has(id, roster.RoleRead)
		})
		for i := range dropped {
			id, _ := by(dropped[i].Record.Key)
			former = append(former, id)
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		g.dropped = members.Digest()
	}
	return former, err
}

// Say writes what this node says of itself, and returns the record.
func (h Held) Say(ctx context.Context, key, value []byte) (*dbadapter.Record, error) {
	g := h.g
	if g.over {
		return nil, dbadapter.ErrClosed
	}
	if err := g.Outside(); err != nil {
		return nil, err
	}
	version, err := g.c.Version()
	if err != nil {
		return nil, err
	}
	hashed, err := g.c.Control.Hash(dbadapter.Record{Key: key, Value: value, Version: version})
	if err != nil {
		return nil, err
	}
	writes := []dbadapter.Write{{Record: hashed}}
	if err := g.c.Control.Sign(writes); err != nil {
		return nil, err
	}
	outcomes, err := g.c.Control.Apply(ctx, writes)
	if err == nil && outcomes[0].Result == dbadapter.Full {
		err = refusals.ErrFull
	}
	return &writes[0].Record.Record, err
}

// Announcement is where a member can be dialled, as it says in its record.
type Announcement struct {
	Addrs [][]byte `cbor:"1,keyasint"` // multiaddrs in binary, without the member's id
	// Unpledged: the member makes no pledges.
	Unpledged bool `cbor:"2,keyasint,omitempty"`
}

// ReadAnnouncement checks what a member says.
func ReadAnnouncement(value []byte) (a Announcement, err error) {
	if err := roster.Unmarshal(value, &a); err != nil {
		return a, err
	}
	if len(a.Addrs) > MaxAddrs {
		return a, fmt.Errorf("%d addresses; at most %d", len(a.Addrs), MaxAddrs)
	}
	for _, addr := range a.Addrs {
		if len(addr) > MaxAddrSize {
			return a, fmt.Errorf("an address of %d bytes; at most %d", len(addr), MaxAddrSize)
		}
	}
	return a, nil
}

// Announce tells the other members where this node can be dialled, unless it has
// told them so already.
func (h Held) Announce(ctx context.Context, addrs [][]byte) error {
	addrs = slices.Clone(addrs[:min(len(addrs), MaxAddrs)])
	slices.SortFunc(addrs, slices.Compare)
	value, err := cbor.Marshal(Announcement{Addrs: addrs})
	if err != nil {
		return err
	}
	key := Key(KindAddresses, h.g.c.Self)
	held, err := h.g.c.Control.Get(key)
	if err == nil && bytes.Equal(held.Value, value) {
		return nil
	}
	if err != nil && !errors.Is(err, dbadapter.ErrNotFound) {
		return err
	}
	_, err = h.Say(ctx, key, value)
	return err
}

// Addresses are where a member can be dialled, in binary.
type Addresses struct {
	ID    roster.ID `cbor:"1,keyasint"`
	Addrs [][]byte  `cbor:"2,keyasint"`
}

// Addresses are where the other members say that they can be dialled.
func (g *Group) Addresses() ([]Addresses, error) {
	var list []Addresses
	for _, m := range g.Members().Members() {
		if m.ID == g.c.Self {
			continue
		}
		r, err := g.c.Control.Get(Key(KindAddresses, m.ID))
		if errors.Is(err, dbadapter.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a, err := ReadAnnouncement(r.Value); err == nil { // the admission has read it before
			list = append(list, Addresses{m.ID, a.Addrs})
		}
	}
	return list, nil
}
