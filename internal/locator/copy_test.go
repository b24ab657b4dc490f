package locator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/seeded"
)

// randomEntries are n or so of a set, some of them Shared, the ends of the range among them.
func randomEntries(r *rand.Rand, n, shards int) []Entry {
	indices := []uint64{}
	for range n {
		indices = append(indices, r.Uint64N(keyhash.P))
	}
	if n > 2 && r.IntN(2) == 0 {
		indices[0], indices[1] = 0, keyhash.P-1
	}
	slices.Sort(indices)
	es := []Entry{}
	for _, index := range slices.Compact(indices) {
		c := Code(r.IntN(shards))
		if r.IntN(500) == 0 {
			c = Shared
		}
		es = append(es, NewEntry(dbadapter.Index(index), c))
	}
	return es
}

func parsed(data []byte, shards int) (es []Entry, at Place, err error) {
	at, err = parseCopy(data, shards, 1, func(part []Entry) { es = append(es, part...) })
	return es, at, err
}

// A copy is read as it was written; any other bytes are refused, also with a checksum that fits,
// or are those of another copy.
func TestCopy(t *testing.T) {
	r := seeded.New(t)
	for _, n := range []int{0, 1, 2, 100, keyset.MaxKeys, keyset.MaxKeys + 1, 20_000} {
		shards := 2 << r.IntN(12)
		want := randomEntries(r, n, shards)
		at := Place{Host: "a host\xff", Log: r.Uint64(), Seq: r.Uint64()}
		data, err := appendCopy(nil, shards, 1, at, want)
		if err != nil {
			t.Fatal(err)
		}
		got, place, err := parsed(data, shards)
		if err != nil || place != at || !slices.Equal(got, want) {
			t.Fatalf("%d entries of %d shards: %d, %v: %v", len(want), shards, len(got), place, err)
		}
		if shards == 256 && n == 20_000 && len(data) > n*46/8 {
			t.Errorf("%d bytes for %d entries", len(data), n)
		}
		if _, err := parseCopy(data, shards, 0, func([]Entry) {}); !errors.Is(err, ErrCopy) {
			t.Errorf("a copy of another set: %v", err)
		}
		if _, _, err := parsed(data, shards/2); !errors.Is(err, ErrCopy) {
			t.Errorf("a copy of other shards: %v", err)
		}
		for range 200 {
			other := slices.Clone(data)
			switch r.IntN(3) {
			case 0:
				other = other[:r.IntN(len(other))]
			case 1:
				other[r.IntN(len(other))] ^= 1 << r.IntN(8)
			default:
				other = append(other, byte(r.Uint32()))
			}
			if _, _, err := parsed(other, shards); !errors.Is(err, ErrCopy) {
				t.Fatalf("%d bytes other than %d: %v", len(other), len(data), err)
			}
			if len(other) < 8 {
				continue
			}
			binary.BigEndian.PutUint64(other[len(other)-8:], xxh3.Hash(other[:len(other)-8]))
			es, at, err := parsed(other, shards)
			if err != nil {
				if !errors.Is(err, ErrCopy) {
					t.Fatal(err)
				}
				continue
			}
			if again, err := appendCopy(nil, shards, 1, at, es); err != nil || !bytes.Equal(again, other) {
				t.Fatalf("%d bytes are read as a copy that has others: %v", len(other), err)
			}
		}
	}
}

func TestIsCopy(t *testing.T) {
	if !IsCopy(copyName(17)) || IsCopy("log") {
		t.Error("a copy is known by its name")
	}
}

// An exact map answers as a plain one, of indices that are spread evenly and of others, and its
// entries take as many bits as it says.
func TestExact(t *testing.T) {
	r := seeded.New(t)
	for range 20 {
		shards := 2 << r.IntN(12)
		narrow := uint64(keyhash.P) >> r.IntN(40)
		x, want := exact{}, map[dbadapter.Index]Code{}
		for range 1 + r.IntN(6000) {
			index, c := dbadapter.Index(r.Uint64N(narrow)), Code(r.IntN(shards))
			switch r.IntN(10) {
			case 0:
				c = Gone
			case 1:
				c = Shared
			}
			x.put(NewEntry(index, c))
			want[index] = c
			if x.full() {
				x = x.merged(shards)
			}
		}
		for index, c := range want {
			if got, ok := x.get(index, x.maybe(index)); !ok || got != c {
				t.Fatalf("index %d is %d, %v, not %d", index, got, ok, c)
			}
		}
		for range 1000 {
			index := dbadapter.Index(r.Uint64N(narrow))
			if _, there := want[index]; there {
				continue
			}
			if _, ok := x.get(index, x.maybe(index)); ok {
				t.Fatalf("index %d is there", index)
			}
		}
		if x = x.merged(shards); x.len() != len(want) {
			t.Fatalf("%d entries, not %d", x.len(), len(want))
		}
	}
}
