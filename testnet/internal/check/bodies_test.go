package check

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// pointing is a record of k that points to the body of a value; salt is one letter.
func pointing(clock int, salt, value string) *dbadapter.Record {
	r := rec(clock, "x")
	sum := sha256.Sum256([]byte(value))
	r.Value = slices.Concat([]byte{1, 0, 1}, []byte(strings.Repeat(salt, 16)), make([]byte, 12), sum[:])
	return r
}

// bodyOfK is the body.
func bodyOfK(clock int, salt, value string) *dbadapter.Record {
	r := rec(clock, value)
	r.Key = []byte("\x00b\x00\x01" + strings.Repeat(salt, 16) + "k")
	return r
}

// sent is a write of a large value.
func (q *quorums) sent(clock int, salt, value string, durably bool) *dbadapter.Record {
	r := pointing(clock, salt, value)
	ask := q.Asks(3, "k", true)
	op := q.Intend(3, "k", false, append([]byte{0}, value...))
	q.Stays(op, durably)
	q.held(bodyOfK(clock+100, salt, value), 0, 1, 2)
	q.held(r, 0, 1, 2)
	q.Made(op, r.Version)
	q.Wrote(ask, op, r.Version, []int{0, 1, 2}, 0)
	return r
}

// ended is what the checker says if the hosts hold these in the end, and list those.
func (q *quorums) ended(r *dbadapter.Record, bodies []*dbadapter.Record, listed ...*dbadapter.Record) string {
	finals := q.final(r, listed...)
	for i := range finals {
		finals[i].Stated = true
		for _, b := range bodies {
			finals[i].Dump = append([]dbadapter.Record{*b}, finals[i].Dump...)
		}
		n := uint64(len(finals[i].Dump))
		finals[i].Kept.Records, finals[i].Recomputed.Records = n, n
	}
	var text []string
	for _, v := range q.Check(finals) {
		text = append(text, v.String())
	}
	return strings.Join(text, "\n")
}

func TestBodies(t *testing.T) {
	given := func(r *dbadapter.Record, value string) *dbadapter.Record {
		out := *r
		out.Value = []byte(value)
		return &out
	}
	lost := func(q *quorums, _ *dbadapter.Record) { q.LostValue(q.Asks(3, "k", true)) }
	first, second := bodyOfK(101, "a", "large"), bodyOfK(102, "b", "later")
	// A large value is written, and a later one behind it; what stands is handed to do.
	for name, c := range map[string]struct {
		once  bool // one host was to have the first value, and no majority
		later bool
		do    func(q *quorums, r *dbadapter.Record)
		// In the end there are these bodies, and kept logs list the first write, or this.
		bodies   []*dbadapter.Record
		kept     bool
		listed   []*dbadapter.Record
		violates string // empty: nothing is wrong
	}{
		"all is there": {do: func(q *quorums, r *dbadapter.Record) {
			q.read(given(r, "large"))
			q.Scanned(3, []dbadapter.Record{*given(r, "large")}, nil, nil, false)
		}, bodies: []*dbadapter.Record{first}},
		"another value is read":                       {do: func(q *quorums, r *dbadapter.Record) { q.read(given(r, "largf")) }, violates: "which no node ever held"},
		"the value is lost":                           {do: lost, violates: "the value is lost, and no shard has lost a majority"},
		"it may be lost, as one host was to have it":  {once: true, do: lost},
		"one host was to have the value before it":    {once: true, later: true, do: lost, violates: "the value is lost, and no shard has lost a majority"},
		"it may be lost, as two of three have failed": {do: func(q *quorums, r *dbadapter.Record) { q.Fails(0, true); q.Fails(1, true); lost(q, r) }},
		"nothing names a body":                        {later: true, bodies: []*dbadapter.Record{first, second}, violates: "no record and no kept entry names"},
		"a kept entry names it":                       {later: true, bodies: []*dbadapter.Record{first, second}, kept: true},
		"a body of nobody's value": {do: func(q *quorums, _ *dbadapter.Record) {
			q.held(bodyOfK(103, "c", "forged"), 0)
		}, violates: `no application asked for this value of "k"`},
		"a scan gives a body": {do: func(q *quorums, _ *dbadapter.Record) {
			q.Scanned(3, []dbadapter.Record{*first}, nil, nil, false)
		}, violates: "a scan gave a reserved key"},
		"a body is listed as a conflict": {listed: []*dbadapter.Record{first}, violates: "its kept log lists a reserved key"},
	} {
		q := newQuorums()
		q.ByWriter()
		r := q.sent(1, "a", "large", !c.once)
		listed := c.listed
		if c.kept {
			listed = append(listed, r)
		}
		if c.later {
			r = q.sent(2, "b", "later", true)
		}
		if c.do != nil {
			c.do(q, r)
		}
		if says := q.ended(r, c.bodies, listed...); c.violates == "" && strings.Contains(says, "body:") || !strings.Contains(says, c.violates) {
			t.Errorf("%s: %s", name, says)
		}
	}
}
