package dbadapter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/keyhash"
)

func TestValidate(t *testing.T) {
	key, signature := []byte("k"), make([]byte, SignatureSize)
	for _, test := range []struct {
		name string
		r    Record
		ok   bool
	}{
		{"least", Record{Key: key}, true},
		{"greatest", Record{Key: make([]byte, MaxKey), Value: make([]byte, MaxValue), Signature: signature}, true},
		{"tombstone", Record{Key: key, Deleted: true, Signature: signature}, true},
		{"no key", Record{Value: key}, false},
		{"long key", Record{Key: make([]byte, MaxKey+1)}, false},
		{"long value", Record{Key: key, Value: make([]byte, MaxValue+1)}, false},
		{"tombstone with a value", Record{Key: key, Value: key, Deleted: true}, false},
		{"short signature", Record{Key: key, Signature: signature[1:]}, false},
		{"long signature", Record{Key: key, Signature: append(signature, 0)}, false},
	} {
		if err := test.r.Validate(); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func anyVersion(t *rapid.T) Version {
	small := rapid.Uint64Range(0, 2)
	return Version{Timestamp(small.Draw(t, "clock")), WriterID(small.Draw(t, "writer")), small.Draw(t, "incarnation")}
}

func anyRecord(t *rapid.T) Record {
	r := Record{Key: []byte("k"), Version: anyVersion(t), Deleted: rapid.Bool().Draw(t, "deleted")}
	if !r.Deleted {
		r.Value = rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 2).Draw(t, "value")
		r.Expires = Timestamp(rapid.Uint64Range(0, 2).Draw(t, "expires") << 16)
	}
	r.Replaces = anyReplaces(t, r.Version)
	return r
}

// Compare must be a total order, or nodes would not agree on winners. It is 0 for
// just the records that have one digest, or two sets would stay different for
// ever, or be called equal when they are not.
func TestCompareIsATotalOrder(t *testing.T) {
	h := NewHasher(Secret{1})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyRecord(t), anyRecord(t), anyRecord(t)
		switch rapid.IntRange(0, 3).Draw(t, "alike") {
		case 0:
			b = a.Clone()
		case 1: // of one version and content
			b.Version, b.Deleted, b.Value = a.Version, a.Deleted, a.Value
			b.Replaces = anyReplaces(t, b.Version)
			if b.Deleted {
				b.Expires = 0
			}
		}
		if a.Compare(&b) != -b.Compare(&a) {
			t.Errorf("Compare is not antisymmetric: %+v, %+v", a, b)
		}
		if a.Compare(&b) >= 0 && b.Compare(&c) >= 0 && a.Compare(&c) < 0 {
			t.Errorf("Compare is not transitive: %+v, %+v, %+v", a, b, c)
		}
		if same := h.Digest(&a) == h.Digest(&b); same != (a.Compare(&b) == 0) {
			t.Errorf("Compare is 0 for differing records, or not for the same: %+v, %+v", a, b)
		}
		if v := a.Version.Compare(b.Version); v != 0 && v != a.Compare(&b) {
			t.Errorf("the version does not decide: %+v, %+v", a, b)
		}
	})
}

func TestVersionForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Version{Timestamp(rapid.Uint64().Draw(t, "clock")), WriterID(rapid.Uint64().Draw(t, "writer")), rapid.Uint64().Draw(t, "incarnation")}
		w := Version{Timestamp(rapid.Uint64().Draw(t, "clock")), WriterID(rapid.Uint64().Draw(t, "writer")), rapid.Uint64().Draw(t, "incarnation")}
		b, err := v.AppendBinary(nil)
		var back Version
		if err != nil || len(b) != VersionSize || back.UnmarshalBinary(b) != nil || back != v {
			t.Errorf("%v in binary is %x and reads as %v", v, b, back)
		}
		c, _ := w.AppendBinary(nil)
		if bytes.Compare(b, c) != v.Compare(w) {
			t.Errorf("the bytes of %v and %v do not sort as they do", v, w)
		}
		if text, err := ParseVersion(v.String()); err != nil || text != v {
			t.Errorf("%v reads as %v, %v", v, text, err)
		}
	})
	var v Version
	for _, size := range []int{0, VersionSize - 1, VersionSize + 1} {
		if v.UnmarshalBinary(make([]byte, size)) == nil {
			t.Errorf("a version of %d bytes is accepted", size)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("0000000000000001-0000000000000002-0000000000000003")
	f.Add("0000000000000001-0000000000000002-000000000000000A")
	f.Add("+000000000000001-0000000000000002-0000000000000003")
	f.Add("0x00000000000001-0000000000000002- 000000000000003")
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseVersion(s); err == nil && v.String() != s {
			t.Errorf("%q is accepted and written %q", s, v)
		}
	})
}

func TestClone(t *testing.T) {
	r := Record{Key: []byte("k"), Value: []byte("v"), Signature: bytes.Repeat([]byte{1}, SignatureSize), Version: Version{Clock: 1}, Expires: 5, Replaces: []Replaced{{1, 2}}}
	c := r.Clone()
	r.Key[0], r.Value[0], r.Signature[0], r.Replaces[0].Writer = 'x', 'x', 'x', 9
	if string(c.Key) != "k" || string(c.Value) != "v" || c.Signature[0] != 1 || c.Version != r.Version || c.Expires != 5 || c.Replaces[0] != (Replaced{1, 2}) {
		t.Errorf("the clone has changed with its origin: %+v", c)
	}
}

// vectorRecords are the records of the golden vectors.
func vectorRecords() []Record {
	v := Version{TimestampAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) + 7, 0x1122334455667788, 0x99aabbccddeeff00}
	long := Record{Key: bytes.Repeat([]byte("k"), MaxKey), Value: bytes.Repeat([]byte("v"), 5000), Version: v}
	return []Record{
		{Key: []byte("key"), Value: []byte("value"), Version: v},
		{Key: []byte("keyv"), Value: []byte("alue"), Version: v},
		{Key: []byte("key"), Version: v},
		{Key: []byte("key"), Version: v, Deleted: true},
		{Key: []byte("key"), Value: []byte("value"), Version: v, Signature: bytes.Repeat([]byte{1}, SignatureSize)},
		{Key: []byte{0, 0xff}, Value: []byte{}, Version: Version{Clock: TimestampAt(Epoch)}},
		long,
		{Key: []byte("key"), Value: []byte("value"), Version: v, Expires: TimestampAt(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))},
		{Key: []byte("key"), Value: []byte("value"), Version: v, Replaces: []Replaced{{1, 2}, {0x1122334455667788, v.Clock - 1}}},
		{Key: []byte("key"), Version: v, Deleted: true, Replaces: []Replaced{{1, 2}}},
		{
			Key: bytes.Repeat([]byte("k"), MaxKey), Value: bytes.Repeat([]byte("v"), 5000), Version: v,
			Expires: MaxExpires, Replaces: []Replaced{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {8, 8}},
		},
	}
}

// TestGolden pins the numbers of records: all nodes must compute these, on every
// processor.
func TestGolden(t *testing.T) {
	secret := Secret{}
	for i := range secret {
		secret[i] = byte(i)
	}
	h := NewHasher(secret)
	var b strings.Builder
	fmt.Fprintln(&b, "# secret: byte i is i. Versions are clock-writer-incarnation, numbers are printed with the most significant digit first.")
	fmt.Fprintln(&b, "# The checksum is that of a bucket which holds the record alone; offer is the hash of its content. docs/protocol,")
	fmt.Fprintln(&b, "# \"Hashed numbers\", has the formulas")
	records := make([]Hashed, 0, 8)
	for i, r := range vectorRecords() {
		hashed, err := Hash(h, r)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, hashed)
		fmt.Fprintf(&b, "record %d: key %s value %s version %v deleted %v", i, repeated(r.Key), repeated(r.Value), r.Version, r.Deleted)
		if r.OptionalFlags() != 0 {
			fmt.Fprintf(&b, " expires %016x replaces %v, in binary %x", uint64(r.Expires), r.Replaces, r.AppendOptional(nil))
		}
		fmt.Fprintln(&b)
		fmt.Fprintf(&b, "  index %011x checksum %011x digest %v offer %x\n",
			uint64(hashed.Index), uint64(PairOf(h, &hashed).Checksum), hashed.Digest, r.ContentHash())
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {5, 0}} {
		var bucket Bucket
		for _, i := range order {
			bucket.Add(&records[i])
		}
		fmt.Fprintf(&b, "bucket of the records %v, if they shared an index, in this order: checksum %011x\n", order, uint64(bucket.Pair(h).Checksum))
	}
	version, _ := vectorRecords()[0].Version.AppendBinary(nil)
	fmt.Fprintf(&b, "version of record 0 in binary: %x\n", version)
	creator := []byte("a creator's peer id, of 38 bytes in all")[:38]
	control, controlID := ControlOf(secret, creator)
	fmt.Fprintf(&b, "namespace of the creator %q: %x\n", creator, NamespaceIDOf(secret, creator))
	fmt.Fprintf(&b, "its control namespace: secret %x, id %x\n", control, controlID)
	for _, i := range []Index{1, 1<<30 - 1, 1 << 30, 63<<30 + 5, 1 << 36, 0x1b5d3198ecb, 4095 << 30, 1<<42 - 12} {
		from, to := RangeOf(i).Bounds()
		fmt.Fprintf(&b, "index %011x: range %d of group %d, from %011x to %011x\n", uint64(i), RangeOf(i), RangeOf(i)/RangesInGroup, uint64(from), uint64(to-1))
	}
	golden.Compare(t, "testdata/golden.txt", b.String())
}

// repeated is bytes in hexadecimal, many alike ones as one and their number.
func repeated(b []byte) string {
	if len(b) > 64 {
		return fmt.Sprintf("%d times %x", len(b), b[:1])
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%x", b))
}

func TestDigestCoversEachField(t *testing.T) {
	h := NewHasher(Secret{1})
	r := Record{Key: []byte("key"), Value: []byte("value"), Version: Version{1, 2, 3}}
	seen := map[Digest]string{h.Digest(&r): "the record"}
	for name, change := range map[string]func(*Record){
		"key":         func(r *Record) { r.Key = []byte("kez") },
		"value":       func(r *Record) { r.Value = []byte("valuf") },
		"clock":       func(r *Record) { r.Version.Clock++ },
		"writer":      func(r *Record) { r.Version.Writer++ },
		"incarnation": func(r *Record) { r.Version.Incarnation++ },
		"moved byte":  func(r *Record) { r.Key, r.Value = []byte("keyv"), []byte("alue") },
		"no value":    func(r *Record) { r.Value = nil },
		"tombstone":   func(r *Record) { r.Value, r.Deleted = nil, true },
	} {
		c := r.Clone()
		change(&c)
		d := h.Digest(&c)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	c := r.Clone()
	c.Signature = make([]byte, SignatureSize)
	if h.Digest(&c) != h.Digest(&r) {
		t.Error("the digest depends on the signature")
	}
}

func TestChecksum(t *testing.T) {
	const index = 77
	h := NewHasher(Secret{1})
	if h.Checksum(index, 0, nil) != 0 {
		t.Error("an empty bucket has a checksum")
	}
	at := func(tm time.Time, hash uint64) Checksum { return h.Checksum(index, TimestampAt(tm), []Digest{{hash}}) }
	for _, c := range []Checksum{at(Epoch, 0), at(Epoch.AddDate(-1, 0, 0), 0), at(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), 1<<22-1), at(Epoch.Add(4095*64*time.Second), 1<<22-1)} {
		if !keyhash.Sealed(index, uint64(c)) || keyhash.Sealed(index+1, uint64(c)) {
			t.Errorf("%d is no checksum of its index, or one of the next", c)
		}
	}
	start := Epoch.AddDate(6, 0, 0).Truncate(64 * time.Second)
	a, b, c := at(start, 5), at(start.Add(64*time.Second-time.Millisecond), 9), at(start.Add(64*time.Second), 1)
	if a.Age(b) != 0 || a.Age(c) != -1 || c.Age(b) != 1 {
		t.Errorf("ages: %d %d %d, want 0 -1 1", a.Age(b), a.Age(c), c.Age(b))
	}
	if a == b {
		t.Error("the hash does not enter the checksum")
	}
	// The time wraps after 4096 units: 36 hours are told on both sides of a wrap.
	for units := range time.Duration(10_000) {
		early := at(start, 3)
		late := at(start.Add(units*64*time.Second), 4)
		want := 0
		if ahead := units % 4096; ahead > 2048 {
			want = -1
		} else if ahead > 0 && ahead < 2048 {
			want = 1
		}
		if late.Age(early) != want || early.Age(late) != -want {
			t.Fatalf("%d units later: ages %d and %d, want %d", units, late.Age(early), early.Age(late), want)
		}
	}
}
