package locator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
)

// messages are of a namespace of 32 shards.
func messages() map[string]Message {
	mark := Mark{1, 2, 3, 4, 5, 6, 7, 8}
	return map[string]Message{
		"poll":             &Poll{Mark: mark, Sets: []Since{{Set: 0, Log: 7, Seq: 300}, {Set: 31, Log: 8}}},
		"news":             &News{Sets: []SetNews{{}, {Said: Changed, To: 302, Changes: []Entry{NewEntry(1, 31), NewEntry(500, Gone), NewEntry(1<<42-12, Shared)}}, {Said: OtherLog}, {Said: NotWhole}}},
		"news, more":       &News{Sets: []SetNews{{Said: Changed, To: 1 << 40, More: true}}},
		"take":             &Take{Mark: mark, Set: 31},
		"take, compared":   &Take{Mark: mark, Set: 3, From: 500, Upto: 1<<42 - 11, Hash: 9},
		"page, empty":      &Page{Log: 7, Seq: 9},
		"page, alike":      &Page{Log: 7, Seq: 9, Entries: []Entry{NewEntry(500, 31), NewEntry(700, 31)}, Next: 701},
		"page":             &Page{Log: 7, Seq: 9, Entries: []Entry{NewEntry(500, 31), NewEntry(501, Shared), NewEntry(1<<42-12, 3)}},
		"page, all shared": &Page{Log: 7, Seq: 9, Entries: []Entry{NewEntry(1, Shared)}},
		"page, equal":      &Page{Log: 7, Seq: 9, Equal: true},
		"page, not whole":  &Page{NotWhole: true},
	}
}

func TestGoldenMessages(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# messages of the feed in a namespace of 32 shards; docs/protocol, \"The feed\"")
	all := messages()
	for _, name := range slices.Sorted(maps.Keys(all)) {
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
	fmt.Fprintf(&b, "# the hash of index 1 in shard 0 and index 500 in shard 31\nhash: %016x\n", HashOf([]Entry{NewEntry(1, 0), NewEntry(500, 31)}))
	golden.Compare(t, "testdata/messages.txt", b.String())
}

func TestRefusedMessages(t *testing.T) {
	for _, m := range []Message{
		&Poll{Sets: []Since{{Set: 3, Log: 7, Seq: 1}, {Set: 3, Log: 7, Seq: 1}}},
		&Poll{Sets: []Since{{Set: 32, Log: 7, Seq: 1}}},
		&News{Sets: []SetNews{{Said: NotWhole + 1}}},
		&News{Sets: make([]SetNews, 33)},
		&News{Sets: []SetNews{{Said: Changed, Changes: []Entry{NewEntry(1, 32)}}}},
		&News{Sets: []SetNews{{Said: Changed, Changes: []Entry{NewEntry(1<<42-11, 3)}}}},
		&News{Sets: []SetNews{{Said: Changed, Changes: []Entry{NewEntry(5, 3), NewEntry(5, 4)}}}},
		&News{Sets: []SetNews{{Said: Changed, Changes: make([]Entry, MaxChanges+1)}}},
		&Take{Set: 32},
		&Take{From: 1<<42 - 11},
		&Take{From: 5, Upto: 5},
		&Take{Hash: 1},
		&Page{},
		&Page{Log: 7, NotWhole: true},
		&Page{Log: 7, Entries: []Entry{NewEntry(5, 3)}, Next: 5},
		&Page{Log: 7, Entries: []Entry{NewEntry(5, 32)}},
		&Page{Log: 7, Entries: []Entry{NewEntry(5, Gone)}},
		&Page{Log: 7, Entries: []Entry{NewEntry(1<<42-11, 3)}},
	} {
		data, err := Append(nil, m, 64)
		if errors.Is(err, ErrCopy) {
			continue // it is not written
		}
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(data, 32); !errors.Is(err, ErrMessage) {
			t.Errorf("%T %+v: %v, %v", m, m, back, err)
		}
	}
	for _, data := range [][]byte{nil, {9}, {kindPoll}, make([]byte, MaxMessage+1), {kindNews, 0xa0, 0}, {kindNews, 0xa1, 2, 0x80}, {kindTake, 0xa2, 1, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x18, 1}} {
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

// entropy is log2 C(2^42, n): how many bits tell n indices apart from other sets of n.
func entropy(n float64) float64 {
	// Stirling, with 2^42 so much above n that (2^42)!/(2^42−n)! is 2^(42·n).
	lg, _ := math.Lgamma(n + 1)
	return 42*n - lg/math.Ln2
}

// TestSizeOfPages prints what a set takes on the wire: at most 1.3 times what tells it apart from others.
func TestSizeOfPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shards := range []int{1, 256} { // values in the set's own shard, and in any
		m := map[dbadapter.Index]Code{}
		for range 40_000 {
			m[dbadapter.Index(1+r.Uint64N(1<<42-12))] = Code(r.IntN(shards))
		}
		h := &testHost{log: 1, has: m, whole: true}
		bytes := 0
		for from, more := dbadapter.Index(0), true; more; {
			ask := &Take{From: from}
			p := h.page(ask)
			for _, msg := range []Message{ask, p} {
				data, err := Append(nil, msg, 256)
				if err != nil {
					t.Fatal(err)
				}
				bytes += len(data)
			}
			from, more = p.Next, p.Next != 0
		}
		bound := entropy(float64(len(m))) + float64(len(m))*math.Log2(float64(shards))
		t.Logf("values in %d shards: %.2f bits a key, %.3f times the bound", shards, 8*float64(bytes)/float64(len(m)), 8*float64(bytes)/bound)
		if 8*float64(bytes) > 1.03*bound {
			t.Errorf("values in %d shards: over the bound", shards)
		}
	}
}
