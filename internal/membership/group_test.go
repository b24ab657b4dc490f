package membership

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// noon is when every test begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var errDisk = errors.New("the disk has failed")

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
}

func idOf(seed byte) roster.ID { return roster.IDOf(keyOf(seed).Public().(ed25519.PublicKey)) }

// disk is a control namespace in memory, and what a group saves. It is told of the group's changes.
type disk struct {
	hasher    dbadapter.Hasher
	records   map[string]dbadapter.Hashed
	record    Record
	unwritten error // if not nil, nothing can be committed
	unsaved   error // if not nil, no record can be saved

	relisted, removed, declared int
	said                        []*dbadapter.Record
}

func (d *disk) Hash(r dbadapter.Record) (dbadapter.Hashed, error) {
	return dbadapter.Hash(d.hasher, r)
}

func (d *disk) Get(key []byte) (dbadapter.Record, error) {
	if r, ok := d.records[string(key)]; ok {
		return r.Record, nil
	}
	return dbadapter.Record{}, dbadapter.ErrNotFound
}

func (d *disk) OfKind(_ context.Context, kind byte) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(d.records)) {
			if key[0] == kind && !yield(d.records[key], nil) {
				return
			}
		}
	}
}

func (d *disk) Apply(_ context.Context, writes []dbadapter.Write) (outcomes []dbadapter.Outcome, err error) {
	for _, w := range writes {
		if d.unwritten != nil {
			return outcomes, d.unwritten
		}
		if w.Action == dbadapter.Collect {
			delete(d.records, string(w.Record.Key))
		} else {
			d.records[string(w.Record.Key)] = w.Record
		}
		outcomes = append(outcomes, dbadapter.Outcome{Result: dbadapter.Applied})
	}
	return outcomes, nil
}

func (d *disk) Sign(writes []dbadapter.Write) error {
	for i := range writes {
		writes[i].Record.Signature = []byte("signed")
	}
	return nil
}

func (d *disk) Signed(_ roster.ID, r *dbadapter.Record) bool {
	return bytes.Equal(r.Signature, []byte("signed"))
}

func (d *disk) Relisted() error { d.relisted++; return nil }
func (d *disk) Removed() error  { d.removed++; return nil }
func (d *disk) Declared()       { d.declared++ }

func (d *disk) Said(records []*dbadapter.Record) error {
	d.said = append(d.said, records...)
	return nil
}

// config is that of a node over the disk.
func (d *disk) config(seed byte) Config {
	secret, root := dbadapter.Secret{1}, []byte(idOf(1))
	clock, tokens := hlc.New(func() time.Time { return noon }), uint64(0)
	d.hasher = reconcile.DeriveControlKeys(secret, root).Hasher
	return Config{
		Self: idOf(seed), Namespace: dbadapter.NamespaceIDOf(secret, root), Creator: idOf(1), Name: "notes",
		Control: d, Observer: d, Clock: clock, Now: func() time.Time { return noon },
		Version: func() (dbadapter.Version, error) {
			return dbadapter.Version{Clock: dbadapter.Timestamp(clock.Read()), Writer: must(idOf(seed).Writer()), Incarnation: 1}, nil
		},
		Random: func(b []byte) { tokens++; binary.BigEndian.PutUint64(b, tokens) },
		Sign:   func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(seed), message), nil },
		Verify: ed25519.Verify,
		Save: func(r *Record) error {
			if d.unsaved != nil {
				return d.unsaved
			}
			d.record = r.Clone()
			return nil
		},
	}
}

// open is the group of node 1 as the disk has it.
func (d *disk) open(t *testing.T) *Group {
	t.Helper()
	g := New(d.config(1))
	if err := g.ReadList(t.Context(), &d.record, nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// found is the group of a namespace that node 1 creates.
func found(t *testing.T) (*disk, *Group) {
	t.Helper()
	d := &disk{records: map[string]dbadapter.Hashed{}}
	d.record.Seeds = [][]byte{must(Found(d.config(1), roster.Policy{MaxSkew: time.Minute}, dbadapter.TimestampAt(noon)))}
	return d, d.open(t)
}

// A statement counts once it is durable, and the observer hears of it then.
func TestStatementIsDurableFirst(t *testing.T) {
	d, g := found(t)
	d.unwritten = errDisk
	if err := g.SetRole(t.Context(), idOf(2), roster.RoleWrite, time.Time{}, false); !errors.Is(err, errDisk) || g.Admits(idOf(2)) || d.relisted > 0 {
		t.Errorf("without a disk: %v; it is a member: %t; the observer hears of %d changes", err, g.Admits(idOf(2)), d.relisted)
	}
	d.unwritten = nil
	if err := g.SetRole(t.Context(), idOf(2), roster.RoleWrite, time.Time{}, false); err != nil || !g.Admits(idOf(2)) || d.relisted != 1 {
		t.Errorf("with it: %v; it is a member: %t; the observer hears of %d changes", err, g.Admits(idOf(2)), d.relisted)
	}
	if again := d.open(t); again.Members().Digest() != g.Members().Digest() {
		t.Error("the next opening reads another list")
	}
}

// A use of a ticket is durable before the node is a member: no crash makes room for one node more.
func TestUseOfTicketIsDurableFirst(t *testing.T) {
	d, g := found(t)
	ticket := must(ParseTicket(must(g.Invite(InviteOptions{Role: roster.RoleRead}, [][]byte{{1}}))))
	redeem := func(seed byte, want error) {
		t.Helper()
		if err := g.Redeem(t.Context(), idOf(seed), ticket.Token[:]); !errors.Is(err, want) || g.Admits(idOf(seed)) != (want == nil) {
			t.Errorf("node %d: %v, want %v; it is a member: %t", seed, err, want, g.Admits(idOf(seed)))
		}
	}
	d.unsaved = errDisk
	redeem(2, errDisk)
	d.unsaved, d.unwritten = nil, errDisk
	redeem(2, errDisk) // the use is saved, and the grant is not
	d.unwritten = nil
	g = d.open(t)
	redeem(3, ErrTicketUsed)
	redeem(2, nil)
	if uses := g.Invitations()[0].UsedBy; !slices.Equal(uses, []status.ID{status.ID(idOf(2))}) {
		t.Errorf("the ticket was used by %v", uses)
	}
}

// What a peer brings is heard of if it is taken. What former members said goes, and with them
// nothing of this node's.
func TestWhatMembersSay(t *testing.T) {
	d, g := found(t)
	if err := g.SetRole(t.Context(), idOf(2), roster.RoleWrite, time.Time{}, false); err != nil {
		t.Fatal(err)
	}
	said := func(seed byte, value []byte) dbadapter.Hashed {
		r := must(d.Hash(dbadapter.Record{Key: Key(KindAddresses, idOf(seed)), Value: value, Version: must(d.config(seed).Version())}))
		r.Signature = []byte("signed")
		return r
	}
	value := []byte{0xa1, 1, 0x81, 0x41, 9} // one address
	records := []dbadapter.Hashed{said(2, value), said(3, value), said(2, []byte("no CBOR"))}
	verdicts := must(g.Admit(t.Context(), idOf(2), records))
	if verdicts[0].Reason != 0 || verdicts[1].Reason == 0 || verdicts[2].Reason == 0 || len(d.said) != 1 {
		t.Errorf("the verdicts are %+v; the observer hears of %d", verdicts, len(d.said))
	}
	if at := must(g.Addresses()); len(at) != 1 || at[0].ID != idOf(2) || !slices.EqualFunc(at[0].Addrs, [][]byte{{9}}, bytes.Equal) {
		t.Errorf("the others are at %v", at)
	}
	if err := errors.Join(
		hold(g, func(h Held) error { return h.Announce(t.Context(), [][]byte{{8}}) }),
		g.Remove(t.Context(), idOf(2), false),
		hold(g, func(h Held) error {
			former, err := h.DropFormer(t.Context())
			if !slices.Equal(former, []roster.ID{idOf(2)}) {
				t.Errorf("what %v said goes", former)
			}
			return err
		}),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(Key(KindAddresses, idOf(1))); err != nil || len(must(g.Addresses())) != 0 {
		t.Errorf("what is left: %v, %v", err, must(g.Addresses()))
	}
}

// hold runs fn while nothing else changes the group.
func hold(g *Group, fn func(h Held) error) error {
	h := g.Hold()
	defer h.Release()
	return fn(h)
}

// A group that has ended changes no more: the folder may be another namespace's.
func TestEnded(t *testing.T) {
	d, g := found(t)
	ticket := must(ParseTicket(must(g.Invite(InviteOptions{}, [][]byte{{1}}))))
	records, saved := len(d.records), len(d.record.Invites)
	_ = hold(g, func(h Held) error { h.End(); return nil })
	_, invited := g.Invite(InviteOptions{}, [][]byte{{1}})
	_, admitted := g.Admit(t.Context(), idOf(2), nil)
	for what, err := range map[string]error{
		"a ticket": invited, "the use of one": g.Redeem(t.Context(), idOf(2), ticket.Token[:]), "records of a peer": admitted,
		"a role":       g.SetRole(t.Context(), idOf(2), roster.RoleRead, time.Time{}, false),
		"statements":   hold(g, func(h Held) error { return h.Take(t.Context(), nil) }),
		"its own word": hold(g, func(h Held) error { return h.Announce(t.Context(), [][]byte{{1}}) }),
	} {
		if !errors.Is(err, dbadapter.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(d.records) != records || len(d.record.Invites) != saved {
		t.Error("something was written")
	}
}
