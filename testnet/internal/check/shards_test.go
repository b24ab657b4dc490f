package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// cutHistory is one of three nodes, of which the first two hold the one shard that keys are
// in, and are whole. Its record was acknowledged at the first.
func cutHistory(both bool) (*History, *dbadapter.Record) {
	h := &History{}
	h.Sharded(func(string) int { return 1 }, func() time.Duration { return 0 })
	h.Holds(0, 1)
	h.Holds(1, 1)
	for _, node := range []int{0, 1} {
		h.Synced(&Sync{Node: node, Peer: 1 - node, Shard: 1, Whole: true, Report: reconcile.Report{Verified: true}, Before: [2][]dbadapter.Record{{}, {}}})
	}
	r := &dbadapter.Record{Key: []byte("k"), Value: []byte("v"), Version: dbadapter.Version{Clock: 5, Writer: 7}}
	op := h.Intend(2, "k", false, r.Value)
	h.Made(op, r.Version)
	h.Observe(0, r)
	if both {
		h.Observe(1, r)
	}
	h.AcknowledgeAt(op, r.Version, []int{0})
	return h, r
}

// says compares the violations of a history without finals.
func says(t *testing.T, h *History, what string, want ...string) {
	t.Helper()
	var got []string
	for _, v := range h.Check(nil) {
		got = append(got, v.String())
	}
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %q", what, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q, want %q", what, got[i], want[i])
		}
	}
}

func TestReads(t *testing.T) {
	older := &dbadapter.Record{Key: []byte("k"), Value: []byte("x"), Version: dbadapter.Version{Clock: 9, Writer: 7}}
	for _, c := range []struct {
		what string
		both bool
		do   func(h *History, r *dbadapter.Record)
		want []string
	}{
		{"what all hold is found", true, func(h *History, r *dbadapter.Record) { h.WasRead(h.Reading(2, "k"), r, true, []int{0}) }, nil},
		{"what all hold is absent", true, func(h *History, _ *dbadapter.Record) { h.WasRead(h.Reading(2, "k"), nil, true, []int{1}) }, []string{"answer: node 2: \"k\": a read was sure of nothing"}},
		{"what all hold is not found for sure", true, func(h *History, _ *dbadapter.Record) { h.WasRead(h.Reading(2, "k"), nil, false, nil) }, nil},
		{"what one holds is absent at the other", false, func(h *History, _ *dbadapter.Record) { h.WasRead(h.Reading(2, "k"), nil, true, []int{1}) }, nil},
		{"what was deleted is absent", true, func(h *History, _ *dbadapter.Record) {
			h.Made(h.Intend(2, "k", true, nil), dbadapter.Version{Clock: 6, Writer: 7})
			h.WasRead(h.Reading(2, "k"), nil, true, []int{1})
		}, nil},
		{"a record of no node", true, func(h *History, _ *dbadapter.Record) { h.WasRead(h.Reading(2, "k"), older, false, nil) }, []string{"which no node ever held"}},
		{"a newcomer is not whole", true, func(h *History, _ *dbadapter.Record) {
			h.Holds(2, 1)
			h.WasRead(h.Reading(2, "k"), nil, true, []int{2})
		}, []string{"a read was sure of nothing, by the nodes [2]"}},
		{"a newcomer has met a copy", true, func(h *History, _ *dbadapter.Record) {
			h.Copied(1)
			h.Restored(1)
			h.Holds(1, 1)
			h.Holds(2, 1)
			h.shards.synced(h, &Sync{Node: 2, Peer: 1, Shard: 1, Whole: true, Report: reconcile.Report{Verified: true}})
			h.WasRead(h.Reading(2, "k"), nil, true, []int{2})
		}, nil},
		{"a newcomer has met a copy, and then a whole one", true, func(h *History, r *dbadapter.Record) {
			h.Copied(1)
			h.Restored(1)
			h.Holds(1, 1)
			h.Holds(2, 1)
			for _, peer := range []int{1, 0} {
				h.shards.synced(h, &Sync{Node: 2, Peer: peer, Shard: 1, Whole: true, Report: reconcile.Report{Verified: true}, Before: [2][]dbadapter.Record{{}, {*r}}})
			}
			h.Observe(2, r)
			h.WasRead(h.Reading(2, "k"), nil, true, []int{2})
		}, []string{"a read was sure of nothing, by the nodes [2]"}},
		{"a removed node has not heard of it", true, func(h *History, _ *dbadapter.Record) {
			h.Removed(1, true)
			h.WasRead(h.Reading(2, "k"), nil, true, []int{1})
		}, nil},
		{"all that held it are gone", true, func(h *History, _ *dbadapter.Record) {
			h.Removed(0, true)
			h.Removed(1, true)
			h.Holds(2, 1)
			h.WasRead(h.Reading(2, "k"), nil, true, []int{2})
		}, nil},
		{"what all hold is nowhere, a moment later", true, func(h *History, _ *dbadapter.Record) {
			h.Reading(2, "k")
			h.shards.now = func() time.Duration { return AnswerAge }
			h.Nowhere(h.Reading(2, "k"), []int{0, 1})
		}, nil},
		{"what all hold is nowhere", true, func(h *History, _ *dbadapter.Record) {
			h.Reading(2, "k")
			h.shards.now = func() time.Duration { return AnswerAge + 1 }
			h.Nowhere(h.Reading(2, "k"), []int{0, 1})
		}, []string{"a read was sure of nothing, by the nodes [0 1]"}},
		{"a read fails in the end", true, func(h *History, r *dbadapter.Record) {
			h.Last(h.Reading(2, "k"), nil, false, errors.New("away"), r)
		}, []string{"a read fails: away"}},
		{"a read is not sure in the end", true, func(h *History, r *dbadapter.Record) { h.Last(h.Reading(2, "k"), r, false, nil, r) }, []string{"a read is not sure"}},
		{"a read is wrong in the end", true, func(h *History, r *dbadapter.Record) { h.Last(h.Reading(2, "k"), nil, true, nil, r) }, []string{"another record than they hold"}},
	} {
		h, r := cutHistory(c.both)
		c.do(h, r)
		says(t, h, c.what, c.want...)
	}
}

func TestHandovers(t *testing.T) {
	h, r := cutHistory(false)
	h.Left(0, 1, []int{1}, []dbadapter.Record{*r})
	says(t, h, "a host lacks it", `handover: node 0: "k": it has dropped shard 1 with`)
	h, r = cutHistory(true)
	h.Left(0, 1, []int{1}, []dbadapter.Record{*r})
	if held := h.hold()[0]; len(held) != 0 || slices.Contains(h.shards.whole(1), 0) {
		t.Errorf("node 0 is to hold %v of the shard that it has left", held)
	}
	h.Holds(0, 1)
	h.Started(0, nil)
	says(t, h, "the host holds it")

	// What came since the two met last a host holds, and not each of them yet.
	h, r = cutHistory(true)
	h.Holds(2, 1)
	verified := reconcile.Report{Verified: true}
	h.Synced(&Sync{Node: 0, Peer: 2, Shard: 1, Whole: true, Report: verified, Before: [2][]dbadapter.Record{{}, {}}})
	h.Left(0, 1, []int{1, 2}, []dbadapter.Record{*r})
	says(t, h, "a host holds what came late")
	h, r = cutHistory(false)
	h.Holds(2, 1)
	for _, peer := range []int{1, 2} {
		h.Synced(&Sync{Node: 0, Peer: peer, Shard: 1, Whole: true, Report: verified, Before: [2][]dbadapter.Record{{}, {}}})
	}
	h.Left(0, 1, []int{1, 2}, []dbadapter.Record{*r})
	says(t, h, "no host holds what came late", "which came late, and of which no host has anything")
	h, r = cutHistory(true)
	h.Holds(2, 1)
	h.Left(0, 1, []int{1, 2}, []dbadapter.Record{*r})
	says(t, h, "one host was never met", "of which node 2, a host, has nothing")
}

func TestCountedHosts(t *testing.T) {
	h, r := cutHistory(false)
	h.AcknowledgeAt(0, r.Version, []int{0, 1})
	says(t, h, "a host is counted that lacks it", `durable: node 1: "k": it is counted as a host`)
}
