package reconcile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// TestGoldenSessions writes down two syncs to the last byte, proofs and all, for
// implementations in other languages: the smallest client's, and one by cells.
func TestGoldenSessions(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Two syncs, frame by frame. docs/PROTOCOL.md says what each byte means.
# secret: byte i is i
# peer ids are binary, the identity multihash of a protobuf Ed25519 key; a's key is 32 bytes 0a, b's 0b
`)
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	id := func(fill byte) []byte { return append([]byte{0, 36, 8, 1, 18, 32}, bytes.Repeat([]byte{fill}, 32)...) }
	keys := DeriveKeys(secret)
	options := func(fill, remote byte, o Options) Options {
		o.Keys, o.Self, o.Remote, o.Nonce = keys, id(fill), id(remote), wire.Nonce(bytes.Repeat([]byte{fill}, 16))
		return o
	}
	for _, s := range []struct {
		name string
		o    Options
	}{
		{"by method all, as the smallest client does", Options{Method: wire.MethodAll}},
		{"by cells, 32 of them", Options{FirstCells: 32}},
	} {
		sides := []*side{newSideOf(t, "a", nil, secret), newSideOf(t, "b", nil, secret)}
		fmt.Fprintf(&b, "\nsync %s\n", s.name)
		put := func(r dbadapter.Record, who ...int) {
			for _, n := range who {
				sides[n].put(r)
				fmt.Fprintf(&b, "%c holds key %x value %x version %s\n", 'a'+n, r.Key, r.Value, r.Version)
			}
		}
		put(record("both", "same", at(0)), 0, 1)
		put(record("of-a", "x", at(time.Second)), 0)
		put(record("of-b", "y", at(2*time.Second)), 1)
		put(record("changed", "old", at(0)), 1)
		put(record("changed", "new", at(time.Hour)), 0)
		va, vb := sides[0].open(), sides[1].open()
		defer va.Close()
		defer vb.Close()
		oa, ob := options(0xa, 0xb, s.o), options(0xb, 0xa, Options{})
		oa.Admit, ob.Admit = admitting(sides[0].write), admitting(sides[1].write)
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
