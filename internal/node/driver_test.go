package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/signature"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The driver of the tests: nodes in memory, on clocks that the test sets, with
// random numbers from a seed. It carries the frames of a sync by hand.

// editMark changes what is durable of a set's watermark.
func editMark(set *Set, change func(s *watermark.State)) {
	s := set.gc.State()
	change(&s)
	set.gc.View(func(w *watermark.Watermark) { w.Restore(s) })
}

// promise is up to when this node holds, at a time, what every member held.
func promise(set *Set, at dbadapter.Timestamp) (p dbadapter.Timestamp) {
	set.gc.View(func(w *watermark.Watermark) { p = w.Promise(at) })
	return p
}

// noon is when every test begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine is a node with all that a driver gives it.
type machine struct {
	*Node
	clock time.Time
	key   ed25519.PrivateKey
	store *memdb.Store
	// restored: the store was restored from a copy.
	restored bool
	// apply, if not nil, stands before the store's Apply.
	apply func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
	// applyControl is the same for the control namespace.
	applyControl func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
	// listed are the copies of the lists.
	listed map[dbadapter.Secret][][]byte
	// raising, if not nil, is called before the data's ceiling is raised.
	raising func()
	// unopened, if not nil, is why no snapshot of the data can be opened.
	unopened error
	save     func(*State) error // if not nil, is called with each state that is to be made durable
	disk     func() error       // if not nil, says why no store can be opened or dropped

	mu       sync.Mutex // guards what follows
	opened   int        // snapshots, less those that were closed
	scanned  int        // records that scans by key have read
	scans    int        // of all records of the data
	random   *rand.Rand
	verified int // signatures
}

// keyOf is the same key for the same seed, on every machine.
func keyOf(seed int) ed25519.PrivateKey {
	var b [ed25519.SeedSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(seed))
	return ed25519.NewKeyFromSeed(b[:])
}

// idOf is the id of a node with that key.
func idOf(seed int) ID { return IDOf(keyOf(seed).Public().(ed25519.PublicKey)) }

func newMachine(seed int) *machine {
	m := &machine{listed: map[dbadapter.Secret][][]byte{}, clock: noon, key: keyOf(seed), store: memdb.New(memdb.Options{}), random: rand.New(rand.NewPCG(uint64(seed), 0))}
	m.Node = New(Config{
		ID:   idOf(seed),
		Sign: func(message []byte) ([]byte, error) { return ed25519.Sign(m.key, message), nil },
		Verify: func(checks []signature.Check) []bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.verified += len(checks)
			return signature.VerifyAll(checks)
		},
		Now: func() time.Time { return m.clock }, Elapsed: func() time.Duration { return m.clock.Sub(noon) },
		Random: func(Purpose) uint64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.random.Uint64()
		},
		Places:   syncing.Places{Sessions: 4, PerPeer: 2, Greetings: 8},
		Interval: time.Second,
	})
	return m
}

// appliedBy is a namespace whose commits go through the machine's apply, and whose
// snapshots are counted.
type appliedBy struct {
	dbadapter.Namespace
	machine *machine
	control bool
}

func (ns appliedBy) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	apply := ns.machine.apply
	if ns.control {
		apply = ns.machine.applyControl
	}
	if apply != nil {
		return apply(ns.Namespace, writes)
	}
	return ns.Namespace.Apply(ctx, writes)
}

func (ns appliedBy) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	if raising := ns.machine.raising; raising != nil && !ns.control {
		raising()
	}
	return ns.Namespace.Raise(ctx, to)
}

func (ns appliedBy) Snapshot() (dbadapter.Snapshot, error) {
	if err := ns.machine.unopened; err != nil && !ns.control {
		return nil, err
	}
	snap, err := ns.Namespace.Snapshot()
	if err == nil {
		ns.machine.count(1)
	}
	return countedSnapshot{snap, ns}, err
}

type countedSnapshot struct {
	dbadapter.Snapshot
	of appliedBy
}

func (s countedSnapshot) Close() error {
	s.of.machine.count(-1)
	return s.Snapshot.Close()
}

func (s countedSnapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	m := s.of.machine
	if !s.of.control && len(prefix) == 0 {
		m.mu.Lock()
		m.scans++
		m.mu.Unlock()
	}
	return func(yield func(dbadapter.Hashed, error) bool) {
		for r, err := range s.Snapshot.Scan(ctx, prefix, after) {
			m.mu.Lock()
			m.scanned++
			m.mu.Unlock()
			if !yield(r, err) {
				return
			}
		}
	}
}

func (m *machine) count(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened += by
}

func (m *machine) open(secret dbadapter.Secret, s *State) (*Namespace, error) {
	control := reconcile.DeriveControlKeys(secret, s.Root()).ID
	return m.Open(context.Background(), Opening{
		Secret: secret, State: s,
		Drop: func(ctx context.Context, id dbadapter.NamespaceID) error {
			if err := m.worn(); err != nil {
				return err
			}
			return m.store.Drop(ctx, id)
		},
		Store: func(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
			if err := m.worn(); err != nil {
				return nil, err
			}
			ns, err := m.store.Namespace(ctx, id, h, observe)
			if m.restored && err == nil {
				ns = relogged{ns}
			}
			return appliedBy{ns, m, id == control}, err
		},
		Listed: m.listed[secret], KeepList: func(statements [][]byte) { m.listed[secret] = statements },
		Save: func(s *State) error {
			if m.save != nil {
				return m.save(s)
			}
			return nil
		},
	})
}

// create makes a namespace of which the machine is the admin.
func (m *machine) create(name string, p Policy) *Namespace {
	secret := m.NewSecret()
	return must(m.open(secret, must(m.Found(secret, name, p))))
}

// newAlone is a machine, and a namespace of which it is the only member.
func newAlone() (*machine, *Namespace) {
	m := newMachine(1)
	return m, m.create("notes", Policy{})
}

// newPair is two machines, and a namespace of the first that the second has joined.
func newPair(role Role) (a, b *machine, sa, sb *Namespace) {
	a, sa = newAlone()
	b = newMachine(2)
	return a, b, sa, must(b.join(a, invite(sa, role)))
}

// setRole gives a node a role, for good.
func setRole(ns *Namespace, id ID, role Role) error {
	return ns.SetRole(context.Background(), id, role, time.Time{}, false)
}

// list lists the members with their roles.
func list(ns *Namespace) string { return fmt.Sprint(ns.Members().Members()) }

// join redeems a ticket of the other node.
func (m *machine) join(other *machine, ticket string) (*Namespace, error) {
	joined, err := m.redeem(other, ticket)
	if err != nil {
		return nil, err
	}
	if ns := m.Namespace(dbadapter.NamespaceIDOf(joined.Secret, joined.State.Root())); ns != nil {
		return ns, ns.Rejoin(context.Background(), joined)
	}
	return m.open(joined.Secret, joined.State)
}

// redeem is what a ticket of the other node hands over.
func (m *machine) redeem(other *machine, ticket string) (*Joined, error) {
	t, err := membership.ParseTicket(ticket)
	if err != nil {
		return nil, err
	}
	request, err := membership.RequestJoin(m.ID, t, nil)
	if err != nil {
		return nil, err
	}
	reply, _, _ := other.AnswerJoin(context.Background(), m.ID, request, func(ID) [][]byte { return nil })
	return m.ReadJoin(t, reply)
}

// invite makes a ticket, good for a day.
func invite(ns *Namespace, role Role) string {
	return must(ns.Invite(membership.InviteOptions{Role: role}, [][]byte{{1}}))
}

// reopened is a namespace that was closed, and is opened with a state that was edited meanwhile.
func (m *machine) reopened(ns *Namespace, edit func(s *State)) *Namespace {
	state := ns.state.Load().clone()
	if edit(state); ns.Close() != nil {
		panic("it cannot be closed")
	}
	return must(m.open(ns.secret, state))
}

// ticketBytes are what the text of a ticket stands for.
func ticketBytes(text string) []byte {
	text = strings.ToUpper(strings.TrimPrefix(text, membership.TicketPrefix))
	return must(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text))
}

// commit carries a write to the store until it is there.
func commit(a *Attempt, err error) (dbadapter.Version, error) {
	for again := err == nil; again; {
		again, err = a.Judge(try(a))
	}
	if err != nil {
		return dbadapter.Version{}, err
	}
	return a.Version(0), nil
}

func try(a *Attempt) ([]dbadapter.Outcome, error) {
	defer a.Hold()()
	writes, err := a.Writes()
	if err != nil {
		return nil, err
	}
	return a.set.Store.Apply(context.Background(), writes)
}

func draft(key, value string) Draft {
	return Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}}
}

func put(ns *Namespace, key, value string) (dbadapter.Version, error) {
	return commit(ns.Sets()[0].Write(draft(key, value)))
}

func get(ns *Namespace, key string) (dbadapter.Record, error) {
	snap, err := ns.Sets()[0].Store.Snapshot()
	if err != nil {
		return dbadapter.Record{}, err
	}
	defer snap.Close()
	return snap.Get([]byte(key))
}

// turn syncs a namespace with another node as the schedule does.
func (m *machine) turn(ns *Namespace, other *machine) error {
	_, _, err := m.syncPart(&ns.Sets()[0].Part, other, syncing.Ask{})
	return err
}

// sync syncs a namespace with another node, and returns what both report.
func (m *machine) sync(ns *Namespace, other *machine, ask syncing.Ask) (mine, theirs reconcile.Report, err error) {
	if err := ns.MayCall(other.ID); err != nil {
		return mine, theirs, err
	}
	return m.syncPart(&ns.Sets()[0].Part, other, ask)
}

// syncPart syncs a part with another node.
func (m *machine) syncPart(p *Part, other *machine, ask syncing.Ask) (mine, theirs reconcile.Report, err error) {
	c := &call{machine: m, other: other, part: p}
	mine, err = p.Plan(other.ID, ask).Run(context.Background(), c, nil)
	for _, held := range c.held {
		if !held.Control {
			theirs = held.theirs
		}
	}
	return mine, theirs, err
}

// call holds the conversations of a sync one after the other, each once.
type call struct {
	*machine
	other *machine
	part  *Part
	held  []held
}

// held is a conversation that is over.
type held struct {
	syncing.Ask
	mine, theirs reconcile.Report
	err          error
}

func (c *call) Converse(_ context.Context, a syncing.Ask, _ func(reconcile.Report)) (reconcile.Report, error) {
	mine, theirs, err := c.converseAbout(c.part, c.other, a)
	c.held = append(c.held, held{a, mine, theirs, err})
	return mine, err
}

func (c *call) Elapsed() time.Duration { return c.elapsed() }

func (c *call) Sleep(context.Context, time.Duration) error {
	return errors.New("it is not tried again")
}

func (c *call) Go(ctx context.Context, f func(ctx context.Context)) { f(ctx) }

func (c *call) Wait(context.Context) {}

// converse holds one conversation of a sync.
func (m *machine) converse(ns *Namespace, other *machine, ask syncing.Ask) (mine, theirs reconcile.Report, err error) {
	return m.converseAbout(&ns.Sets()[0].Part, other, ask)
}

func (m *machine) converseAbout(p *Part, other *machine, ask syncing.Ask) (mine, theirs reconcile.Report, err error) {
	defer p.Call(other.ID, ask)()
	a, err := p.Initiate(context.Background(), other.ID, ask, nil)
	if err != nil {
		return mine, theirs, err
	}
	frame := bytes.NewBuffer(a.Session.Next().Frame)
	message, size, err := wire.Read(frame)
	if err != nil {
		return mine, theirs, err
	}
	hello := message.(*wire.Hello)
	there, done, err := other.Answer(m.ID, hello)
	if err != nil {
		a.Session.Next()
		a.Session.Deliver(reconcile.Refusal(err), 0)
		a.Session.Next()
		mine, err = a.End(a.Session.Err())
		return mine, theirs, err
	}
	defer done()
	b := there.Respond(context.Background(), m.ID, hello, size, nil)
	carry(b.Session, a.Session)
	theirs, _ = b.End(b.Session.Err())
	if mine, err = a.End(a.Session.Err()); err == nil {
		err = syncing.Proved(ask, &mine)
	}
	return mine, theirs, err
}

// carry takes frames to and fro between two sessions, of which the first is
// about to send, until both are over.
func carry(sides ...*reconcile.Session) { carryBy(func(int, int) {}, sides...) }

// carryBy is carry that tells which side sends how many bytes, before the other has them.
func carryBy(sends func(side, size int), sides ...*reconcile.Session) {
	var (
		inbox       [2]bytes.Buffer
		waits, over [2]bool
	)
	for i := 0; !over[0] || !over[1]; i = 1 - i {
		for s := sides[i]; !over[i]; {
			if waits[i] && inbox[i].Len() == 0 && !over[1-i] {
				break // it is the other's turn to send
			}
			if waits[i] {
				if m, size, err := wire.Read(&inbox[i]); err != nil {
					s.Fail(errors.Join(reconcile.ErrUnreachable, err))
				} else {
					s.Deliver(m, size)
				}
			}
			e := s.Next()
			waits[i], over[i] = e.Want == reconcile.WantReceive, e.Want == reconcile.WantNothing
			frame := bytes.Clone(e.Frame)
			sends(i, len(frame))
			inbox[1-i].Write(frame)
			if i == 1 && len(frame) > 0 {
				break // the first side reads each frame as it comes
			}
		}
	}
}

// succeeds ends the test at an error.
func succeeds(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr checks which error something gives; nil: none.
func wantErr(t testing.TB, err, want error, what string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// second and third are the error of what gives more.
func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

// must is for what fails only if the test is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// records are those that a namespace holds, by key.
func records(ns *Namespace) (out []dbadapter.Record) {
	snap := must(ns.Sets()[0].Store.Snapshot())
	defer snap.Close()
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		out = append(out, must(r, err).Record)
	}
	return out
}

// signedBy is the record with the signature of a key, in a namespace.
func signedBy(seed int, ns *Namespace, r dbadapter.Record) dbadapter.Record {
	r.Signature = ed25519.Sign(keyOf(seed), SignedBytes(ns.Sets()[0].Keys.ID, &r))
	return r
}

// writerOf is the id under which versions name the node with that key.
func writerOf(seed int) dbadapter.WriterID { return must(idOf(seed).Writer()) }
