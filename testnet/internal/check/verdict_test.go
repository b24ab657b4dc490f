package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// at is the version that node 0 gave at a time.
func at(clock int) dbadapter.Version {
	return dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: 7, Incarnation: 9}
}

func put(key, value string, v dbadapter.Version) dbadapter.Record {
	return dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: v}
}

func gone(key string, v dbadapter.Version) dbadapter.Record {
	return dbadapter.Record{Key: []byte(key), Deleted: true, Version: v}
}

func dump(records ...dbadapter.Record) []dbadapter.Record { return records }

// final is a node whose kept state is right.
func final(node, reach int, records ...dbadapter.Record) Final {
	s := State{Records: uint64(len(records)), Cells: []rateless.Cell{{}}}
	for i := range records {
		s.Digest = s.Digest.Add(dbadapter.NewHasher(dbadapter.Secret{1}).Digest(&records[i]))
	}
	return Final{Node: node, Reach: reach, Dump: records, Kept: s, Recomputed: s}
}

// written is an acknowledged write.
func (h *History) written(node int, r dbadapter.Record) {
	h.Acknowledge(h.Intend(node, string(r.Key), r.Deleted, r.Value), r.Version)
}

var (
	red    = put("k", "red", at(1))
	blue   = put("k", "blue", at(2))
	erased = gone("k", at(3))
	other  = put("l", "green", at(4))
)

// A verdict names the node, the key and the record that should have won.
func TestText(t *testing.T) {
	h := New()
	h.written(2, blue)
	got := h.Check([]Final{final(2, 0)})
	want := `durable: node 2: "k": it held a value (version ` + blue.Version.String() + `, content `
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), want) {
		t.Errorf("%v", got)
	}
}

// A verdict about a fault at every key is bounded, and each time the same.
func TestBound(t *testing.T) {
	verdict := func() []Violation {
		h := New()
		for i := range 1000 {
			h.written(0, put(fmt.Sprint("k", i), "v", at(i+1)))
		}
		h.Started(0, nil)
		return h.Check([]Final{final(0, 0)})
	}
	a := verdict()
	if len(a) != maxViolations {
		t.Errorf("%d violations", len(a))
	}
	if !slices.Equal(a, verdict()) {
		t.Error("two verdicts on one history differ")
	}
}
