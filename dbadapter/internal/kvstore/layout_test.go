package kvstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

var goldenChanges = []dbadapter.Change{
	{Seq: 9, Index: 1, Old: 2, New: 3, Keys: [][]byte{[]byte("key")}, Delta: dbadapter.Digest{7, 8, 9, 10}, Records: 1},
	{Seq: 10, Index: 4, Old: 5, New: 6, Keys: [][]byte{[]byte("ab"), []byte("c")}, Shared: true, Delta: dbadapter.Digest{11}, Records: -2},
}

var goldenMeta = layout.Meta{
	Seq: 1, First: 2, Records: 3, Latest: 4, Raised: 5, Log: 6,
	Kept:   layout.Kept{Seq: 9, SetAside: 10, Conflicts: 11, Bytes: 12},
	Own:    13,
	Digest: dbadapter.Digest{5, 6, 7, 8},
}

// keyed are records of which only the keys are set.
func keyed(keys ...string) (held []commit.Held) {
	for _, key := range keys {
		held = append(held, commit.Held{Record: dbadapter.Hashed{Record: dbadapter.Record{Key: []byte(key)}}})
	}
	return held
}

// Vectors of the disk format: if one changes, so must Format. Every single flipped bit of
// every sealed entry is found, and so is an entry that stands in the place of another.
func TestGoldenLayout(t *testing.T) {
	h := dbadapter.NewHasher(dbadapter.Secret{1, 2, 3})
	r := dbadapter.Record{Key: []byte("key"), Value: []byte("value"), Version: dbadapter.Version{Clock: 0x0102030405060708, Writer: 9, Incarnation: 10}}
	signed := r
	signed.Signature = bytes.Repeat([]byte{0xab}, dbadapter.SignatureSize)
	full := signed
	full.Expires, full.Replaces = 0x0203040506070000, []dbadapter.Replaced{{Writer: 1, Clock: 2}, {Writer: 9, Clock: 3}}
	dead := dbadapter.Record{Key: []byte("key"), Deleted: true, Version: r.Version}
	m, hd, id, conflict := goldenMeta, head{6, 7}, dbadapter.NamespaceID{1, 2, 3}, dbadapter.KeptConflict
	type reader = func(b []byte) error
	keptOf := func(number uint32, why dbadapter.Why, seq uint64) reader {
		return func(b []byte) error { _, err := readKept(b, number, why, seq, h); return err }
	}
	bucketOf := func(number uint32, index dbadapter.Index) reader {
		return func(b []byte) error { _, err := readBucket(b, number, index); return err }
	}
	envelopeOf := func(key string) reader {
		return func(b []byte) error { _, err := readEnvelope(b, []byte(key), h); return err }
	}
	logAt := func(last uint64) reader {
		return func(b []byte) error { _, err := layout.ReadLogEntry(b, 5, last); return err }
	}
	metaOf := func(number uint32) reader {
		return func(b []byte) error { return new(layout.Meta).Decode(b, number) }
	}
	keepsOf := func(number uint32) reader {
		return func(b []byte) error { return new(keeps).decode(b, number) }
	}
	nameOf := func(id dbadapter.NamespaceID) reader {
		return func(b []byte) error { _, err := decodeName(id, b); return err }
	}
	for _, v := range []struct {
		name string
		got  []byte
		want string
		read []reader // the entry in its place, and then in others; none: it has no seal
	}{
		{"record", enveloped(h, r), "0001020304050607080000000000000009000000000000000a6c11230b3e18f2af76616c7565", []reader{envelopeOf("key"), envelopeOf("kez")}},
		{"signed record", enveloped(h, signed), "0201020304050607080000000000000009000000000000000ab4b9db7103a653c1abababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab76616c7565", nil},
		{"signed record that expires and replaces two versions", enveloped(h, full), "6201020304050607080000000000000009000000000000000ae49fdf84ef502e85abababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab020304050607000002000000000000000100000000000000020000000000000009000000000000000376616c7565", []reader{envelopeOf("key"), envelopeOf("kez")}},
		{"tombstone", enveloped(h, dead), "0101020304050607080000000000000009000000000000000a9a0f0aa942b61bc3", nil},
		{"index key", appendIndexKey(nil, 5, 0x010203040506), "0000000569010203040506", nil},
		{"log key", appendLogKey(nil, 5, 99), "000000056c0000000000000063", nil},
		{"tail key", tailKey(5, []byte("key")), "00000005746b6579", nil},
		{"bucket", appendBucket(nil, 5, 77, 88, keyed("a", "bc")), "00000000005801610262630f495a1962e8763a", []reader{bucketOf(5, 77), bucketOf(5, 78), bucketOf(6, 77)}},
		{"log entry", layout.AppendLogEntry(nil, 5, goldenChanges), "020000000000010000000000020000000000030700000000000000080000000000000009000000000000000a0000000000000008036b65790000000000040000000000050000000000060b000000000000000000000000000000000000000000000000000000000000000f02026162016369cdf1f2fdd9c0e3", []reader{logAt(10), logAt(11)}},
		{"head of a summary", (&keeps{1, 2, 3, 4}).encode(5), "0000000000000001000000000000000200000000000000030000000000000004afee203050dce0d4", []reader{keepsOf(5), keepsOf(6)}},
		{"key of a part of a summary", partKey(5, 6, 7), "0000000567000000000000000600000007", nil},
		{"meta", m.Encode(5), "0000000000000001000000000000000200000000000000030000000000000004000000000000000500000000000000060000000000000009000000000000000a000000000000000b000000000000000c000000000000000d050000000000000006000000000000000700000000000000080000000000000072584e76c0cf9434", []reader{metaOf(5), metaOf(6)}},
		{"kept key", keptKey(5, layout.KindKept, conflict, 99), "000000056b010000000000000063", nil},
		{"kept", appendKept(nil, 5, 99, time.UnixMilli(0x0102), leaver(h, signed)), "000000000000000102000000000000000100000000000000020000000000000003036b65790201020304050607080000000000000009000000000000000ab4b9db7103a653c1abababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab76616c7565d0edea172dd9ef8e", []reader{keptOf(5, conflict, 99), keptOf(6, conflict, 99), keptOf(5, conflict, 98), keptOf(5, dbadapter.KeptSetAside, 99)}},
		{"head", hd.encode(), "000000000000000600000007dd41b4e7d5fa9bd1", []reader{new(head).decode}},
		{"name", encodeName(id, 5), "000000053a5f7292fb296fb3", []reader{nameOf(id), nameOf(dbadapter.NamespaceID{2})}},
	} {
		if got := hex.EncodeToString(v.got); got != v.want {
			t.Errorf("%s is\n%s, want\n%s", v.name, got, v.want)
		}
		for i, read := range v.read {
			if i == 0 {
				findsEachFlip(t, v.name, v.got, read)
			} else if err := read(v.got); !errors.Is(err, dbadapter.ErrCorrupt) {
				t.Errorf("%s in another place (%d) gives %v, want ErrCorrupt", v.name, i, err)
			}
		}
	}
}

func findsEachFlip(t *testing.T, name string, b []byte, read func([]byte) error) {
	t.Helper()
	if err := read(b); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if err := read(b); !errors.Is(err, dbadapter.ErrCorrupt) && !(i/8 == 0 && strings.Contains(name, "record") && 1<<(i%8) == flagLong) {
			t.Errorf("%s with bit %d flipped gives %v, want ErrCorrupt", name, i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for cut := range b {
		if err := read(b[:cut]); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("%s cut to %d bytes gives %v, want ErrCorrupt", name, cut, err)
		}
	}
}

// FuzzEntries reads any bytes as each kind of entry: no kind panics, and a
// record that is accepted encodes to the same bytes.
func FuzzEntries(f *testing.F) {
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	r := dbadapter.Record{Key: []byte("key"), Value: []byte("value")}
	f.Add(enveloped(h, r))
	f.Add(appendBucket(nil, 5, 77, 88, keyed("a", "bc")))
	f.Add(layout.AppendLogEntry(nil, 5, []dbadapter.Change{{Seq: 77, Index: 1, Old: 2, New: 3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := readEnvelope(b, []byte("key"), h); err == nil && b[0]&flagLong == 0 {
			if !bytes.Equal(appendEnvelope(nil, &r), b) {
				t.Error("a record is accepted that encodes otherwise")
			}
		}
		// The seal is taken off, or no mutation would get past it.
		bk := bucket{rest: b}
		for {
			key, ok, err := bk.next()
			if !ok || err != nil {
				break
			}
			if len(key) > len(b) {
				t.Error("a key is longer than its bucket")
			}
		}
		sealed := func(s uint64) []byte { return layout.AppendSeal(bytes.Clone(b), 0, s) }
		_, _ = readBucket(sealed(layout.Seed(5, layout.KindIndex, 77)), 5, 77)
		_, _ = layout.ReadLogEntry(sealed(layout.Seed(5, layout.KindLog, 77)), 5, 77)
		_, _ = readKept(sealed(layout.KeptSeed(5, dbadapter.KeptConflict, 77)), 5, dbadapter.KeptConflict, 77, h)
		_ = new(layout.Meta).Decode(sealed(layout.Seed(5, layout.KindMeta, 0)), 5)
		_ = new(head).decode(sealed(layout.Seed(0, layout.KindMeta, 0)))
	})
}

// leaver is a record that loses against another.
func leaver(h dbadapter.Hasher, r dbadapter.Record) *commit.Leaver {
	return &commit.Leaver{Why: dbadapter.KeptConflict, Record: hashed(h, r), By: dbadapter.Version{Clock: 1, Writer: 2, Incarnation: 3}}
}

// enveloped is a record's envelope.
func enveloped(h dbadapter.Hasher, r dbadapter.Record) []byte {
	stored := hashed(h, r)
	return appendEnvelope(nil, &stored)
}
