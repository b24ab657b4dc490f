package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// client is a member made of "Joining" and "The smallest client" of docs/protocol, and of what
// these name, alone. It has frames, digests and signatures, and no code of a node.
type client struct {
	t              *testing.T
	key            ed25519.PrivateKey
	clock          uint64 // the greatest that it has seen, or written
	control, notes clientSet
	list           [16]byte // that it greets with; the smallest client says zeros
}

// clientSet is the records that the client has of a namespace.
type clientSet struct {
	id     [16]byte
	secret [32]byte
	held   map[string]dbadapter.Record
}

func (c *client) id() ID { return IDOf(c.key.Public().(ed25519.PublicKey)) }

func sum(parts ...any) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		if s, ok := p.(string); ok {
			p = []byte(s)
		}
		h.Write(p.([]byte))
	}
	return [32]byte(h.Sum(nil))
}

// joinAsClient redeems a ticket at the node that has made it.
func joinAsClient(t *testing.T, seed int, at *machine, text string) *client {
	t.Helper()
	c := &client{t: t, key: keyOf(seed)}
	var ticket, reply map[int]any
	succeeds(t, cbor.Unmarshal(ticketBytes(text), &ticket))
	request := must(cbor.Marshal(map[int]any{1: 1, 2: ticket[3], 3: ticket[5], 4: []any{}}))
	answer, _, err := at.AnswerJoin(t.Context(), c.id(), request, func(ID) [][]byte { return nil })
	if err != nil || cbor.Unmarshal(answer, &reply) != nil {
		t.Fatal(err)
	}
	secret, root := reply[3].([]byte), reply[4].([]byte)
	if placement, cut := reply[8].([]byte); cut {
		root = append(bytes.Clone(root), placement...)
	}
	c.clock, _ = reply[7].(uint64)
	id, control := sum("syncd namespace id\x00", secret, root), sum("syncd control id\x00", secret, root)
	if !bytes.Equal(id[:16], ticket[3].([]byte)) {
		t.Fatal("the reply is about another namespace than the ticket")
	}
	c.notes = clientSet{[16]byte(id[:]), [32]byte(secret), map[string]dbadapter.Record{}}
	c.control = clientSet{[16]byte(control[:]), sum("syncd control secret\x00", secret), map[string]dbadapter.Record{}}
	return c
}

// write makes a record of the client's, later than what it has seen.
func (c *client) write(s *clientSet, wall time.Time, key string, value []byte) dbadapter.Record {
	c.clock = max(c.clock+1, uint64(wall.UnixMilli())<<16)
	peer := sum([]byte(c.id()[2:]))
	r := dbadapter.Record{Key: []byte(key), Value: value, Version: dbadapter.Version{
		Clock: dbadapter.Timestamp(c.clock), Writer: dbadapter.WriterID(binary.BigEndian.Uint64(peer[:])), Incarnation: 7,
	}}
	b := append([]byte("syncd record signature 1\x00"), s.id[:]...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(r.Key))), r.Key...)
	for _, n := range []uint64{uint64(r.Version.Clock), uint64(r.Version.Writer), r.Version.Incarnation} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(binary.BigEndian.AppendUint64(append(b, 0), uint64(len(r.Value))), r.Value...)
	r.Signature = ed25519.Sign(c.key, b)
	s.held[key] = r
	return r
}

// tellsNoPledges says that the client makes no pledges.
func (c *client) tellsNoPledges(at *machine) {
	c.write(&c.control, at.clock, "a"+string(c.id()), must(cbor.Marshal(map[int]any{1: []any{}, 2: true})))
	c.sync(&c.control, at)
}

// sync takes what a node has of a set, and gives what it has. It returns why the node has refused
// records of the client, by key.
func (c *client) sync(s *clientSet, at *machine) map[string]wire.Reason {
	c.t.Helper()
	hasher := dbadapter.NewHasher(s.secret)
	names := map[dbadapter.Digest]string{}
	hello := &wire.Hello{Version: 2, Mapping: 4, Namespace: s.id, Nonce: wire.Nonce{byte(c.clock)}, Method: wire.MethodAll, ListsMayDiffer: true, Greeting: wire.Greeting{List: c.list}}
	given := make([]wire.Sent, 0, len(s.held))
	for key, r := range s.held {
		given = append(given, wire.Sent{Record: r})
		names[hasher.Digest(&r)] = key
		hello.Digest, hello.Records = hello.Digest.Add(hasher.Digest(&r)), hello.Records+1
	}
	mac := hmac.New(sha256.New, s.secret[:])
	for _, field := range []string{"syncd sync 1 initiator", string(c.id()), string(at.ID), string(hello.Nonce[:])} {
		mac.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(field))), field...))
	}
	hello.Proof = wire.Proof(mac.Sum(nil))
	part, done, err := at.Answer(c.id(), hello)
	if err != nil {
		c.t.Fatal(err)
	}
	defer done()
	b := part.Respond(context.Background(), c.id(), hello, 0, nil)
	read := func() wire.Message {
		e := b.Session.Next()
		if e.Want != reconcile.WantSend {
			c.t.Fatalf("the node says nothing: %v", b.Session.Err())
		}
		m, _, err := wire.Read(bytes.NewReader(bytes.Clone(e.Frame)))
		if _, working := m.(*wire.Working); err != nil || working {
			c.t.Fatal(m, err)
		}
		return m
	}
	send := func(m wire.Message) {
		for e := b.Session.Next(); e.Want != reconcile.WantReceive; e = b.Session.Next() {
			c.t.Fatalf("the node does not wait, it wants %+v: %v", e, b.Session.Err())
		}
		b.Session.Deliver(m, len(wire.Append(nil, m)))
	}
	refused := map[string]wire.Reason{}
	welcome := read().(*wire.Welcome)
	if welcome.Records == hello.Records && welcome.Digest == hello.Digest {
		_ = read().(*wire.Same)
	} else {
		_ = read().(*wire.Result)
		var taken uint64
		var m wire.Message
		for m = read(); m.Kind() == wire.KindRecords; m = read() {
			for _, r := range m.(*wire.Records).Records {
				if own, held := s.held[string(r.Record.Key)]; !r.Withheld && (!held || r.Record.Compare(&own) > 0) {
					s.held[string(r.Record.Key)], taken = r.Record, taken+1
				}
				c.clock = max(c.clock, uint64(r.Record.Version.Clock))
			}
		}
		send(&wire.Answer{Closing: len(given) == 0})
		if len(given) > 0 {
			send(&wire.Records{Records: given})
			send(&wire.End{Applied: taken})
			for _, r := range read().(*wire.End).Refusals {
				refused[names[r.Digest]] = r.Reason
			}
		}
	}
	b.Session.Next()
	succeeds(c.t, second(b.End(b.Session.Err())))
	return refused
}

// The smallest client joins three nodes, writes and reads. While it has not said that it makes no
// pledges, tombstones wait for it; once it has, they go as without it, it is told of what comes too late, and no
// deletion comes back.
func TestSmallestClientHarmsNoCluster(t *testing.T) {
	without := newCrew(t, 3)
	rounds := func(c *crew) (n int) {
		c.put(1, "goes", "1")
		c.round()
		c.del(2, "goes")
		for n = 1; n <= 12; n++ {
			c.round()
			if !slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return slices.Contains(c.keys(i), "-goes") }) {
				break
			}
		}
		return n
	}
	want := rounds(without)

	c := newCrew(t, 3)
	cl := joinAsClient(t, 9, c.machines[0], invite(c.ns[0], RoleWrite))
	if n := rounds(c); n <= 12 || want > 12 {
		t.Errorf("a member that says nothing does not hold collection back: %d rounds, and %d without it", n, want)
	}
	cl.tellsNoPledges(c.machines[0])
	set := c.ns[0].Sets()[0]
	_, waitedFor := set.waitedFor(c.ns[0].Members())
	if holds := set.gc.State().Holds; len(waitedFor) != 3 || len(holds) != 1 || holds[0].Clock != 1 {
		t.Error("the node promises what the others may lack that the client gave it before, or waits for the client")
	}
	c.round()
	c.quiet()
	if n := rounds(c); n != want {
		t.Errorf("a tombstone goes after %d rounds, and after %d without the client", n, want)
	}
	cl.write(&cl.notes, c.machines[0].clock, "of the client", []byte("1"))
	stale := cl.write(&cl.notes, c.machines[0].clock, "deleted", []byte("1"))
	if refused := cl.sync(&cl.notes, c.machines[1]); len(refused) > 0 {
		t.Errorf("%v were refused", refused)
	}
	c.round()
	c.del(0, "deleted")
	c.round()
	c.quiet()
	for i, m := range c.machines {
		cl.notes.held["deleted"] = stale
		if refused := cl.sync(&cl.notes, m); refused["deleted"] != wire.ReasonFloor || len(refused) != 1 {
			t.Errorf("%d refuses %v", i, refused)
		}
		c.want(i, "of the client")
	}
	c.round()
	for i, ns := range c.ns {
		c.want(i, "of the client")
		if left := ns.Sets()[0].Left(); left.SetAside > 0 {
			t.Errorf("%d has set aside %+v", i, left)
		}
	}

	// A node whose identity a client has used may lack what was collected meanwhile.
	c.join(3, RoleWrite)
	c.round()
	c.round()
	ns, set := c.ns[3], c.ns[3].Sets()[0]
	joinAsClient(t, 4, c.machines[0], invite(c.ns[0], RoleAdmin)).tellsNoPledges(c.machines[0])
	succeeds(t, third(c.machines[3].converse(ns, c.machines[0], syncing.Ask{Control: true})))
	if ns.pledges(idOf(4)) || c.ns[0].pledges(idOf(4)) || !set.gc.Recovering() {
		t.Error("the node has not heard what the client has said")
	}
	cl.list = ns.Members().Digest()
	delete(cl.notes.held, "deleted") // as what is refused so
	for range 2 {                    // nobody recovers by what promises nothing
		if cl.sync(&cl.notes, c.machines[3]); !set.gc.Recovering() {
			t.Error("the node has recovered by a client")
		}
	}
	succeeds(t, ns.Announce(t.Context(), [][]byte{{1}}))
	c.round()
	c.round()
	if !ns.pledges(idOf(4)) || !c.ns[0].pledges(idOf(4)) || set.gc.Recovering() {
		t.Error("the node's own word does not take the place of the client's")
	}
	c.del(3, "of the client")
	c.round(0, 1, 2)
	c.quiet()
}

// No layout names a client that has said that it makes no pledges. It leaves the one that was stated before.
func TestClientHostsNothing(t *testing.T) {
	a := newMachine(1)
	sa := a.shards("notes")
	named := func(id ID) bool {
		for range 3 {
			a.clock = a.clock.Add(2 * time.Minute)
			sa.tended(t)
		}
		layout, _, err := sa.Layout()
		return slices.Contains(must(layout, err).Hosts(3), id)
	}
	late := joinAsClient(t, 2, a, invite(sa, RoleWrite))
	if !named(late.id()) {
		t.Error("a member that may write is a host unless it says that it is none")
	}
	for _, c := range []*client{late, joinAsClient(t, 3, a, invite(sa, RoleWrite))} {
		c.tellsNoPledges(a)
		if named(c.id()) {
			t.Error("a layout names the client")
		}
	}
}

// Whatever the order in which nodes and clients write, delete, tend and meet: what a node has
// acknowledged, or a client has given, stands or was overwritten, and nothing that was deleted is back.
func TestClientsInAnyOrder(t *testing.T) {
	for seed := range uint64(16) {
		random := rand.New(rand.NewPCG(seed, 3))
		c := newCrew(t, 3)
		var clients []*client
		latest := map[string]dbadapter.Record{} // of what a node holds, or has held
		for i := range 2 {
			clients = append(clients, joinAsClient(t, 20+i, c.machines[0], invite(c.ns[0], RoleWrite)))
		}
		c.round() // all have heard of the clients
		note := func(i int) {
			for _, r := range records(c.ns[i]) {
				if was, ok := latest[string(r.Key)]; !ok || r.Compare(&was) > 0 {
					latest[string(r.Key)] = r
				}
			}
		}
		for step := range 300 {
			i, j, cl, key := random.IntN(3), random.IntN(3), clients[random.IntN(2)], fmt.Sprint("k", random.IntN(12))
			c.pass(time.Duration(random.IntN(3)) * time.Second)
			switch random.IntN(12) {
			case 0:
				c.put(i, key, fmt.Sprint(random.Uint64()))
			case 1:
				if slices.Contains(c.keys(i), key) {
					c.del(i, key)
				}
			case 2: // by a clock that may be behind
				cl.clock -= min(cl.clock, uint64(random.IntN(2))*uint64(30*time.Second/time.Millisecond)<<16)
				cl.write(&cl.notes, c.machines[i].clock.Add(-time.Duration(random.IntN(20))*time.Second), key, []byte(fmt.Sprint(random.Uint64())))
			case 3:
				for key, why := range cl.sync(&cl.notes, c.machines[i]) {
					if why != wire.ReasonFloor {
						t.Fatalf("seed %d: %q is refused for %v", seed, key, why)
					}
					if random.IntN(2) == 0 { // some offer it again and again
						delete(cl.notes.held, key)
					}
				}
			case 4:
				if step > 50 && random.IntN(4) == 0 {
					cl.tellsNoPledges(c.machines[i])
				}
				cl.sync(&cl.control, c.machines[i])
			case 5, 6, 7, 8:
				if i != j {
					if err := c.turn(i, j); err != nil && !errors.Is(err, syncing.ErrRejected) && !errors.Is(err, reconcile.ErrBusy) {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			case 9:
				if err := c.machines[i].Tend(t.Context()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			default:
				if i != j {
					c.round(i, j)
				}
			}
			note(i)
			note(j)
		}
		for _, cl := range clients {
			cl.tellsNoPledges(c.machines[0])
		}
		c.quiet()
		for i, ns := range c.ns {
			if left := ns.Sets()[0].Left(); left.SetAside > 0 {
				t.Errorf("seed %d: %d has set aside %+v", seed, i, left)
			}
			held := map[string]dbadapter.Record{}
			for _, r := range records(ns) {
				held[string(r.Key)] = r
			}
			for key, want := range latest {
				got, ok := held[key]
				if ok == want.Deleted || ok && got.Compare(&want) != 0 {
					t.Errorf("seed %d: %d holds %v of %+v", seed, i, ok, want)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}
