package directory

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/placement"
)

// messages are of a namespace of 32 shards.
func messages() map[string]Message {
	begun := keyset.Cursor{Begun: true, After: 500}
	return map[string]Message{
		"poll from nothing": &Poll{All: true},
		"poll":              &Poll{Log: 7, Seq: 300},
		"poll that waits":   &Poll{Log: 7, Seq: 300, Wait: true},
		"news, none":        &News{Log: 7, Layout: 5, From: 300, To: 300},
		"news, begins":      &News{Log: 7, From: 300, To: 300, Begins: true, All: true, Sums: []SetSum{{0, Sum{1, 2}}, {31, Sum{}}}},
		"news": &News{
			Log: 7, From: 300, To: 303,
			Events: []Event{{Home: 3, Index: 1 << 40, Was: Gone, Is: 31}, {Home: 4, Kind: Opened, Sum: Sum{3, 4}}, {Home: 5, Kind: Closed}},
			Sums:   []SetSum{{3, Sum{5, 6}}, {4, Sum{3, 4}}},
		},
		"news, more":    &News{Log: 7, From: 300, To: 301, More: true, Events: []Event{{Home: 31, Index: 1<<42 - 12, Was: 0, Is: Shared}}},
		"take":          &Take{Log: 7, Home: 31},
		"take, on":      &Take{Log: 7, Home: 31, At: begun},
		"block, empty":  &Block{Log: 7, Home: 31, Seq: 9, Last: true},
		"block":         &Block{Log: 7, Home: 31, Seq: 9, rows: rows{pack(1, 0), pack(500, 31)}},
		"block, shared": &Block{Log: 7, Home: 31, Seq: 9, At: begun, Last: true, rows: rows{pack(501, Shared), pack(1<<42-12, 3)}},
	}
}

func TestGoldenMessages(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# messages of the feed in a namespace of 32 shards; docs/PROTOCOL.md, \"The feed\"")
	all := messages()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range all {
			if !yield(name) {
				return
			}
		}
	}) {
		data, err := Append(nil, all[name], 32)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(data, 32)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(all[name]) {
			t.Errorf("%s: %v, %v", name, back, err)
		}
		fmt.Fprintf(&b, "%s: %x\n", name, data)
	}
	fmt.Fprintf(&b, "# the sum of index 1 in shard 0 and index 500 in shard 31\n")
	var s Sum
	s.add(pack(1, 0), 1)
	s.add(pack(500, 31), 1)
	fmt.Fprintf(&b, "sum: %x\n", s.appendTo(nil))
	golden.Compare(t, "testdata/messages.txt", b.String())
}

func TestRefusedMessages(t *testing.T) {
	for _, m := range []Message{
		&News{Log: 7, From: 1, To: 2, Begins: true, All: true, Events: []Event{{Kind: Closed}}},
		&News{Log: 7, Begins: true},
		&News{Log: 7, More: true},
		&News{Log: 7, Events: []Event{{Was: 3, Is: 3}}, To: 1},
		&News{Log: 7, Events: []Event{{Kind: 3}}, To: 1},
		&News{Log: 7, From: math.MaxUint64, Events: []Event{{Kind: Closed}}},
		&News{Log: 7, Sums: []SetSum{{3, Sum{}}, {3, Sum{}}}},
		&News{Log: 7, Sums: []SetSum{{32, Sum{}}}},
		&News{},
		&Take{Home: 32},
		&News{Log: 7, Events: []Event{{Was: Gone, Is: 32}}, To: 1},
	} {
		data, err := Append(nil, m, 32)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(data, 32); !errors.Is(err, ErrMessage) {
			t.Errorf("%T %+v: %v, %v", m, m, back, err)
		}
	}
	for _, data := range [][]byte{nil, {9}, {kindPoll}, make([]byte, MaxMessage+1), append([]byte{kindPoll, 0, 0, 0, 0, 0, 0, 0, 0}, 0x80, 0, 0)} {
		if _, err := Parse(data, 32); !errors.Is(err, ErrMessage) {
			t.Errorf("%x: %v", data[:min(len(data), 20)], err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		data, err := Append(nil, m, 32)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data, 32)
		if err != nil {
			return
		}
		if again, err := Append(nil, m, 32); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%+v is written as %x, %v", m, again, err)
		}
	})
}

// entropy is log2 C(2^bits, n): how many bits tell n hashes apart from other sets of n.
func entropy(bits, n float64) float64 {
	// Stirling, with 2^bits so much above n that (2^bits)!/(2^bits−n)! is 2^(bits·n).
	lg, _ := math.Lgamma(n + 1)
	return bits*n - lg/math.Ln2
}

// TestSizeOfFeed prints what a set costs on the wire; PROTOCOL.md and the issue bound it.
func TestSizeOfFeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ keys, shards int }{{1_000_000, 32}, {10_000_000, 256}, {100_000_000, 256}} {
		n := c.keys / c.shards
		bytes, got := feedSize(t, randomRows(r, n, c.shards), c.shards)
		hashes := entropy(48, float64(got))
		whole := hashes + float64(got)*math.Log2(float64(c.shards))
		t.Logf("%d keys, %d shards: a set of %d takes %d bytes, %.2f bits a key: %.3f × the bound of its sorted hashes (%.2f), %.3f × with their shards; all sets %.1f MB",
			c.keys, c.shards, got, bytes, 8*float64(bytes)/float64(got), 8*float64(bytes)/hashes, hashes/float64(got), 8*float64(bytes)/whole, float64(bytes*c.shards)/1e6)
		if 8*float64(bytes) > 1.3*hashes || 8*float64(bytes) > 1.02*whole {
			t.Errorf("%d keys in %d shards: over the bound", c.keys, c.shards)
		}
	}
}

func randomRows(r *rand.Rand, n, shards int) func(yield func(dbadapter.Index, Code) bool) {
	m := make(map[dbadapter.Index]Code, n)
	for range n {
		m[dbadapter.Index(1+r.Uint64N(1<<42-12))] = Code(r.IntN(shards))
	}
	return sortedRows(m)
}

func sortedRows(m map[dbadapter.Index]Code) func(yield func(dbadapter.Index, Code) bool) {
	var rs rows
	for index, code := range m {
		rs = append(rs, pack(index, code))
	}
	slices.Sort(rs)
	return func(yield func(dbadapter.Index, Code) bool) {
		for _, x := range rs {
			if !yield(x.index(), x.code()) {
				return
			}
		}
	}
}

// feedSize carries a whole set, and returns the bytes of all its messages.
func feedSize(t *testing.T, entries func(yield func(dbadapter.Index, Code) bool), shards int) (bytes, keys int) {
	h := NewHost(shards, 1)
	h.SetLayout(testLayout)
	h.Open(placement.Shard(shards-1), entries)
	for at := (keyset.Cursor{}); !at.Done; {
		ask, err := Append(nil, &Take{Log: 1, Home: placement.Shard(shards - 1), At: at}, shards)
		if err != nil {
			t.Fatal(err)
		}
		b, err := h.Block(&Take{Log: 1, Home: placement.Shard(shards - 1), At: at})
		if err != nil {
			t.Fatal(err)
		}
		data, err := Append(nil, b, shards)
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(ask) + len(data)
		keys += b.Len()
		at = b.next()
	}
	return bytes, keys
}
