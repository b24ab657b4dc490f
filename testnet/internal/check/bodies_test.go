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
	for name, c := range map[string]struct {
		do   func(q *quorums) string
		want string // empty: nothing is wrong
	}{
		"all is there": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.read(given(r, "large"))
			q.Scanned(3, []dbadapter.Record{*given(r, "large")}, nil, nil, false)
			return q.ended(r, []*dbadapter.Record{bodyOfK(101, "a", "large")})
		}, ""},
		"another value is read": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.read(given(r, "largf"))
			return q.ended(r, nil)
		}, "which no node ever held"},
		"the value is lost": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.LostValue(q.Asks(3, "k", true))
			return q.ended(r, nil)
		}, "the value is lost, and no shard has lost a majority"},
		"it may be lost, as one host was to have it": {func(q *quorums) string {
			r := q.sent(1, "a", "large", false)
			q.LostValue(q.Asks(3, "k", true))
			return q.ended(r, nil)
		}, ""},
		"one host was to have the value before it": {func(q *quorums) string {
			q.sent(1, "a", "large", false)
			r := q.sent(2, "b", "later", true)
			q.LostValue(q.Asks(3, "k", true))
			return q.ended(r, nil)
		}, "the value is lost, and no shard has lost a majority"},
		"it may be lost, as two of three have failed": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.Fails(0, true)
			q.Fails(1, true)
			q.LostValue(q.Asks(3, "k", true))
			return q.ended(r, nil)
		}, ""},
		"nothing names a body": {func(q *quorums) string {
			q.sent(1, "a", "large", true)
			r := q.sent(2, "b", "later", true)
			return q.ended(r, []*dbadapter.Record{bodyOfK(101, "a", "large"), bodyOfK(102, "b", "later")})
		}, "no record and no kept entry names"},
		"a kept entry names it": {func(q *quorums) string {
			old := q.sent(1, "a", "large", true)
			r := q.sent(2, "b", "later", true)
			return q.ended(r, []*dbadapter.Record{bodyOfK(101, "a", "large"), bodyOfK(102, "b", "later")}, old)
		}, ""},
		"a body of nobody's value": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.held(bodyOfK(103, "c", "forged"), 0)
			return q.ended(r, nil)
		}, `no application asked for this value of "k"`},
		"a scan gives a body": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			q.Scanned(3, []dbadapter.Record{*bodyOfK(101, "a", "large")}, nil, nil, false)
			return q.ended(r, nil)
		}, "a scan gave a reserved key"},
		"a body is listed as a conflict": {func(q *quorums) string {
			r := q.sent(1, "a", "large", true)
			return q.ended(r, nil, bodyOfK(101, "a", "large"))
		}, "its kept log lists a reserved key"},
	} {
		q := newQuorums()
		q.ByWriter()
		if says := c.do(q); c.want == "" && strings.Contains(says, "body:") || !strings.Contains(says, c.want) {
			t.Errorf("%s: %s", name, says)
		}
	}
}
