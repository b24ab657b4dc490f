package reconcile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// TestGoldenSessions writes down three syncs to the last byte, proofs and all, for
// implementations in other languages: the smallest client's, one by cells, and
// one with offers, bids and a third leg.
func TestGoldenSessions(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Three syncs, frame by frame. docs/protocol says what each byte means.
# secret: byte i is i
# peer ids are binary, the identity multihash of a protobuf Ed25519 key; a's key is 32 bytes 0a, b's 0b
`)
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	id := func(fill byte) []byte { return append([]byte{0, 36, 8, 1, 18, 32}, bytes.Repeat([]byte{fill}, 32)...) }
	keys := DeriveKeys(secret, nil)
	greeting := func(fill byte) func() wire.Greeting {
		return func() wire.Greeting {
			tau := at(time.Hour).Clock
			g := wire.Greeting{List: [16]byte(bytes.Repeat([]byte{0xc}, 16)), Tau: tau, Floor: at(0).Clock, Incarnation: uint64(fill), Time: uint64(tau.Time().UnixMilli())}
			fmt.Fprintf(&b, "the greeting of %x has list %x, tau %d, floor %d, incarnation %d, time %d\n", fill, g.List, g.Tau, g.Floor, g.Incarnation, g.Time)
			return g
		}
	}
	options := func(fill, remote byte, o Options) Options {
		o.Keys, o.Self, o.Remote, o.Nonce = keys, id(fill), id(remote), wire.Nonce(bytes.Repeat([]byte{fill}, 16))
		return o
	}
	for _, s := range []struct {
		name  string
		o     Options
		large bool
	}{
		{"by method all, as the smallest client does", Options{Method: wire.MethodAll, ListsMayDiffer: true}, false},
		{"by cells, 32 of them", Options{FirstCells: 32}, false},
		{"by cells, with offers to adopt, to fetch and to answer, bids, a stub and a record that comes back", Options{FirstCells: 32}, true},
	} {
		sides := []*side{newSideOf(t, "a", nil, secret), newSideOf(t, "b", nil, secret)}
		fmt.Fprintf(&b, "\nsync %s\n", s.name)
		put := func(r dbadapter.Record, who ...int) {
			for _, n := range who {
				sides[n].put(r)
				value := fmt.Sprintf("%x", r.Value)
				if len(r.Value) > offerAbove {
					value = fmt.Sprintf("%d times %x", len(r.Value), r.Value[:1])
				}
				fmt.Fprintf(&b, "%c holds key %x value %s version %s\n", 'a'+n, r.Key, value, r.Version)
			}
		}
		put(record("both", "same", at(0)), 0, 1)
		put(record("of-a", "x", at(time.Second)), 0)
		put(record("of-b", "y", at(2*time.Second)), 1)
		put(record("changed", "old", at(0)), 1)
		put(record("changed", "new", at(time.Hour)), 0)
		if s.large {
			x, y := strings.Repeat("x", offerAbove+1), strings.Repeat("y", offerAbove+1)
			for _, r := range []struct {
				key    string
				va, vb string
				a, b   time.Duration
			}{
				{"adopted", x, x, 0, time.Hour},
				{"fetched", x, y, 0, time.Hour},
				{"answered", x, x, time.Second, 0},
				{"bid", x, y, time.Hour, 0},
				{"stub", x, x, time.Hour, 0},
				{"back", "x", "y", time.Second, 0},
			} {
				put(record(r.key, r.va, at(r.a)), 0)
				put(record(r.key, r.vb, at(r.b)), 1)
			}
		}
		va, vb := sides[0].open(), sides[1].open()
		defer va.Close()
		defer vb.Close()
		oa, ob := options(0xa, 0xb, s.o), options(0xb, 0xa, Options{})
		oa.Admit, ob.Admit = admitting(sides[0].write), admitting(sides[1].write)
		oa.Greeting, ob.Greeting = greeting(0xa), greeting(0xb)
		fmt.Fprintf(&b, "a's peer id %x, nonce %x\nb's peer id %x, nonce %x\n", oa.Self, oa.Nonce, ob.Self, ob.Nonce)
		fmt.Fprintf(&b, "proof in Hello   %x\n", oa.proof("initiator", oa.Self, oa.Remote, oa.Nonce))
		fmt.Fprintf(&b, "proof in Welcome %x\n", oa.proof("responder", oa.Self, oa.Remote, oa.Nonce, ob.Nonce))
		sa, sb := Initiate(va, oa), Respond(opening(vb), ob)
		defer sa.Close()
		defer sb.Close()
		carry(t, sa, sb, &outcome{}, func(initiator bool, m wire.Message) wire.Message {
			from := "b"
			if initiator {
				from = "a"
			}
			fmt.Fprintf(&b, "%s says %-8s %s\n", from, strings.TrimPrefix(fmt.Sprintf("%T", m), "*wire."), hex.EncodeToString(wire.Append(nil, m)))
			return m
		})
		if !sa.Report().Verified || !sb.Report().Verified {
			t.Fatal(sa.Err(), sb.Err())
		}
		digest, records := sides[0].state()
		fmt.Fprintf(&b, "both hold %d records, digest %016x%016x%016x%016x\n", records, digest[3], digest[2], digest[1], digest[0])
	}
	golden.Compare(t, "testdata/sessions.txt", b.String())
}

// opening answers any Hello with the replica.
func opening(r Replica) Open { return func(*wire.Hello) (Replica, error) { return r, nil } }

// admitting is an admission that sees plain records.
func admitting(admit func([]dbadapter.Record) ([]Verdict, error)) Admission {
	return func(hashed []dbadapter.Hashed) func() ([]Verdict, error) {
		records := make([]dbadapter.Record, len(hashed))
		for n := range hashed {
			records[n] = hashed[n].Record
		}
		return func() ([]Verdict, error) { return admit(records) }
	}
}

// list returns what has been declined.
func (d *Declined) list() []DeclinedRecord { return slices.Collect(maps.Values(d.records)) }

// forget makes all records travel again.
func (d *Declined) forget() { d.records = nil }

// hashed hashes records that may be read in a test.
func hashed(h dbadapter.Hasher, records ...dbadapter.Record) []dbadapter.Hashed {
	var all []dbadapter.Hashed
	for _, r := range records {
		all = append(all, dbadapter.Hashed{Record: r, Index: h.Index(r.Key), Digest: h.Digest(&r)})
	}
	return all
}

// TestGoldenKeys pins what a secret stands for: the formulas are in
// docs/protocol, "Hashed numbers".
func TestGoldenKeys(t *testing.T) {
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	creator := bytes.Repeat([]byte{7}, 38)
	keys, control, shard := DeriveKeys(secret, creator), DeriveControlKeys(secret, creator), DeriveShardKeys(secret, creator, 5)
	ask, reply := &wire.Ask{Nonce: wire.Nonce{1}}, &wire.Reply{Nonce: wire.Nonce{2}}
	ProveAsk(keys, []byte{0xa}, []byte{0xb}, ask)
	ProveReply(keys, []byte{0xb}, []byte{0xa}, ask, reply)
	golden.Compare(t, "testdata/keys.txt", fmt.Sprintf("# secret: byte i is i; creator: 38 bytes 07\nnamespace: %x\nkey of the cells: %x\n"+
		"control namespace: %x\nits secret: %x\nits key of the cells: %x\n"+
		"proof in an Ask from 0a to 0b, nonce 01…: %x\nproof in its Reply, nonce 02…: %x\n"+
		"shard 5: %x\nits secret: %x\nits key of the cells: %x\nits topic: %x\n", keys.ID, keys.Cells, control.ID, control.Secret, control.Cells, ask.Proof, reply.Proof, shard.ID, shard.Secret, shard.Cells, shard.Topic))
}
