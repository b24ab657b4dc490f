package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// quorums is a history of four nodes, of which 0 to 2 are the hosts of shard 1, where all keys are.
type quorums struct {
	*History
	now time.Time
}

func newQuorums() *quorums {
	q := &quorums{New(), time.Unix(1000, 0)}
	q.Sharded(func(string) int { return 1 }, func() time.Time { return q.now })
	for _, node := range []int{0, 1, 2} {
		q.Holds(node, 1)
		q.goes(node, 1, "a", "", []int{0, 1, 2}, []int{0, 1, 2})
	}
	return q
}

func (q *quorums) goes(node int, epoch uint64, name, parent string, before, after []int) {
	q.Goes(node, &Row{Shard: 1, Layout: epoch, Epoch: epoch, Name: name, Parent: parent, Old: before, New: after})
}

func ver(clock int) dbadapter.Version {
	return dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(int64(clock), 0)), Writer: dbadapter.WriterID(clock), Incarnation: 1}
}

// rec is a record of k, whose writer had seen these; an empty value is a deletion.
func rec(clock int, value string, seen ...int) *dbadapter.Record {
	r := &dbadapter.Record{Key: []byte("k"), Value: []byte(value), Deleted: value == "", Version: ver(clock)}
	for _, v := range seen {
		r.Replaces = append(r.Replaces, dbadapter.Replaced{Writer: ver(v).Writer, Clock: ver(v).Clock})
	}
	return r
}

// write is a write of a record at node 3, which these hosts then hold.
func (q *quorums) write(r *dbadapter.Record, quorum bool, hosts ...int) Op {
	ask := q.Asks(3, "k", quorum)
	op := q.Intend(3, "k", r.Deleted, r.Value)
	q.held(r, hosts...)
	q.Made(op, r.Version)
	q.Wrote(ask, op, r.Version, hosts, 0)
	return op
}

func (q *quorums) held(r *dbadapter.Record, hosts ...int) {
	for _, host := range hosts {
		q.Observe(host, r)
	}
}

func (q *quorums) read(r *dbadapter.Record) { q.Read(q.Asks(3, "k", true), r) }

// final has the hosts hold one record in the end, and list these.
func (q *quorums) final(r *dbadapter.Record, listed ...*dbadapter.Record) []Final {
	var finals []Final
	for _, node := range []int{0, 1, 2} {
		f := Final{Node: node, Shard: 1, Members: []int{0, 1, 2}, Log: []dbadapter.Kept{}}
		if r != nil {
			f.Dump = []dbadapter.Record{*r}
			f.Kept.Records, f.Recomputed.Records = 1, 1
		}
		for _, l := range listed {
			f.Log = append(f.Log, dbadapter.Kept{Why: dbadapter.KeptConflict, Record: *l})
		}
		finals = append(finals, f)
	}
	return finals
}

// says compares the violations of a history.
func (q *quorums) says(t *testing.T, finals []Final, want ...string) {
	t.Helper()
	var got []string
	for _, v := range q.Check(finals) {
		got = append(got, v.String())
	}
	if len(got) != len(want) {
		t.Errorf("%q, want %q", got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuorumRequests(t *testing.T) {
	one, two, gone := rec(5, "v"), rec(6, "w", 5), rec(7, "", 5)
	for _, c := range []struct {
		what string
		do   func(q *quorums)
		want []string
	}{
		{"what was acknowledged is read", func(q *quorums) { q.read(one) }, nil},
		{"nothing is read", func(q *quorums) { q.read(nil) }, []string{`answer: node 3: "k": a quorum read gave nothing`}},
		{"nothing is read at level one", func(q *quorums) { q.Read(q.Asks(3, "k", false), nil) }, nil},
		{"an older one is read", func(q *quorums) { q.write(two, true, 0, 1); q.read(one) }, []string{"a quorum read gave a value"}},
		{"a read began before", func(q *quorums) { r := q.Asks(3, "k", true); q.write(two, true, 0, 1); q.Read(r, one) }, nil},
		{"an older one is read of a write at level one", func(q *quorums) { q.write(two, false, 0); q.read(one) }, nil},
		{"a deletion is behind it", func(q *quorums) { q.write(gone, true, 0, 1); q.read(nil) }, nil},
		{"a deletion comes back", func(q *quorums) { q.write(gone, true, 0, 1); q.read(one) }, []string{`resurrect: node 3: "k": a quorum read gave a value`}},
		{"it has expired", func(q *quorums) {
			late := rec(6, "w", 5)
			late.Expires = dbadapter.TimestampAt(q.now)
			q.Expiring(q.write(late, true, 0, 1))
			q.read(nil)
		}, nil},
		{"a record of no node", func(q *quorums) { q.read(two) }, []string{"which no node ever held"}},
		{"a write is not later", func(q *quorums) { q.write(rec(4, "x"), true, 3) }, []string{`later: node 3: "k": a quorum write was acknowledged`}},
		{"a write at level one is not later", func(q *quorums) { q.write(rec(4, "x"), false, 3) }, nil},
		{"a dated one is not later", func(q *quorums) {
			ask, op := q.Asks(3, "k", true), q.Intend(3, "k", false, []byte("x"))
			q.Dated(op)
			q.Wrote(ask, op, ver(4), nil, 0)
		}, nil},
		{"a host is counted that lacks it", func(q *quorums) { q.Wrote(q.Asks(3, "k", false), 0, ver(5), []int{2}, 0) }, []string{`durable: node 2: "k": it is counted`}},
		{"a later one at least", func(q *quorums) { q.write(two, false, 0); q.ReadAtLeast(q.Asks(3, "k", false), two, ver(5)) }, nil},
		{"nothing at least", func(q *quorums) { q.ReadAtLeast(q.Asks(3, "k", false), nil, ver(5)) }, []string{"a read of that version at least gave nothing"}},
	} {
		q := newQuorums()
		q.write(one, true, 0, 1)
		c.do(q)
		t.Run(c.what, func(t *testing.T) { q.says(t, nil, c.want...) })
	}
}

// What was acknowledged is judged while majorities have their data, and no admins made rows apart.
func TestMajoritiesHaveTheirData(t *testing.T) {
	stale := []string{"a quorum read gave nothing"}
	for _, c := range []struct {
		what string
		do   func(q *quorums)
		want []string
	}{
		{"one of three fails", func(q *quorums) { q.Fails(1, true) }, stale},
		{"two of three fail", func(q *quorums) { q.Fails(1, true); q.Fails(2, true) }, nil},
		{"a node fails that is no host", func(q *quorums) { q.Fails(1, true); q.Fails(3, true) }, stale},
		{"one is put back that does not know of it", func(q *quorums) { q.Fails(1, false) }, nil},
		{"one fails, is whole again, and another one fails", func(q *quorums) {
			q.Fails(1, true)
			q.Mended(1, func(int) bool { return true })
			q.Fails(2, true)
		}, stale},
		{"one fails, is not whole again, and another one fails", func(q *quorums) {
			q.Fails(1, true)
			q.Mended(1, func(node int) bool { return node != 1 })
			q.Fails(2, true)
		}, nil},
		{"one fails, and hosts that are not there yet are to take over", func(q *quorums) {
			q.Fails(1, true)
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 2, 3})
			q.Mended(1, func(int) bool { return true })
			q.Fails(2, true)
		}, nil},
		{"one fails, and is not among the new hosts", func(q *quorums) {
			q.Fails(1, true)
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 2, 3})
			q.goes(0, 3, "c", "b", []int{0, 2, 3}, []int{0, 2, 3})
			q.Fails(2, true)
		}, stale},
		{"one fails, and with it a majority of the new hosts", func(q *quorums) {
			q.Fails(1, true)
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1})
		}, nil},
		{"admins make rows apart", func(q *quorums) {
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1})
			q.goes(2, 2, "c", "a", []int{0, 1, 2}, []int{0, 2})
		}, nil},
		{"a row is heard of twice", func(q *quorums) {
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1, 2})
			q.goes(0, 3, "c", "b", []int{0, 1, 2}, []int{0, 1, 2})
			q.goes(1, 2, "b", "a", []int{0, 1, 2}, []int{0, 1, 2})
		}, stale},
		{"a row goes back", func(q *quorums) {
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1, 2})
			q.goes(0, 1, "a", "", []int{0, 1, 2}, []int{0, 1, 2})
		}, append(slices.Clone(stale), "rows: node 0: of shard 1 it went by the row of epoch 2")},
		{"a row goes back to that of another layout of the same epoch", func(q *quorums) {
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1})
			q.Goes(0, &Row{Shard: 1, Layout: 2, Epoch: 1, Name: "a", Old: []int{0, 1, 2}, New: []int{0, 1, 2}})
		}, nil},
	} {
		q := newQuorums()
		q.write(rec(5, "v"), true, 0, 1)
		c.do(q)
		q.read(nil)
		t.Run(c.what, func(t *testing.T) { q.says(t, nil, c.want...) })
	}
}

// In the end what was acknowledged is there, or was seen by what is, or is listed.
func TestAcknowledgedInTheEnd(t *testing.T) {
	one, unseen, two := rec(5, "v"), rec(6, "w"), rec(6, "w", 5)
	for _, c := range []struct {
		what string
		do   func(q *quorums) []Final
		want []string
	}{
		{"it is there", func(q *quorums) []Final { q.held(one, 2); return q.final(one) }, nil},
		{"nothing is", func(q *quorums) []Final { return q.final(nil) }, []string{
			`durable: "k": a quorum write was acknowledged`, `durable: node 0: "k": it held`,
		}},
		{"a later write has seen it", func(q *quorums) []Final { q.write(two, false, 0, 1, 2); return q.final(two) }, nil},
		{"a later write has not", func(q *quorums) []Final { q.write(unseen, false, 2); return q.final(unseen) }, []string{
			`lost: node 3: "k": a value (version`,
		}},
		{"it is listed", func(q *quorums) []Final { q.write(unseen, false, 2); return q.final(unseen, one) }, nil},
		{"its hosts have failed", func(q *quorums) []Final {
			q.Fails(0, true)
			q.Fails(1, true)
			q.History.held[0] = nil
			q.History.held[1] = nil
			return q.final(nil)
		}, nil},
		{"admins made rows apart", func(q *quorums) []Final {
			q.goes(0, 2, "b", "a", []int{0, 1, 2}, []int{0, 1})
			q.goes(2, 2, "c", "a", []int{0, 1, 2}, []int{0, 2})
			return q.final(nil)
		}, []string{`durable: "k": a quorum write was acknowledged`, `durable: node 0: "k": it held`}},
	} {
		q := newQuorums()
		q.write(one, true, 0, 1)
		finals := c.do(q)
		t.Run(c.what, func(t *testing.T) { q.says(t, finals, c.want...) })
	}
}

func TestConditions(t *testing.T) {
	one, two := rec(5, "v"), rec(6, "w", 5)
	// on is a write on a version; of 0, on that there is none.
	on := func(q *quorums, clock int, r *dbadapter.Record) {
		ask, op := q.Asks(3, "k", true), q.Intend(3, "k", false, r.Value)
		if clock == 0 {
			q.If(op, dbadapter.Version{})
		} else {
			q.If(op, ver(clock))
		}
		q.held(r, 0, 1)
		q.Made(op, r.Version)
		q.Wrote(ask, op, r.Version, []int{0, 1}, 0)
	}
	for _, c := range []struct {
		what string
		do   func(q *quorums)
		want []string
	}{
		{"it is so", func(q *quorums) { on(q, 5, two) }, nil},
		{"there is a later one", func(q *quorums) { q.write(two, true, 0, 1); on(q, 5, rec(7, "x", 5)) }, []string{`condition: node 3: "k": a write on version`}},
		{"there is one", func(q *quorums) { on(q, 0, rec(7, "x")) }, []string{"condition"}},
		{"it was deleted", func(q *quorums) { q.write(rec(6, "", 5), true, 0, 1); on(q, 0, rec(7, "x", 6)) }, nil},
		{"it names another one as replaced", func(q *quorums) { q.write(two, false, 2); on(q, 5, rec(7, "x", 5, 6)) }, []string{"names version"}},
		{"it is made anew", func(q *quorums) {
			op := q.Intend(3, "k", false, []byte("x"))
			q.If(op, ver(5))
			q.Made(op, ver(7))
			q.Made(op, ver(8))
			q.held(rec(8, "x", 5), 0)
		}, nil},
		{"it is made anew when a host has taken it", func(q *quorums) {
			op := q.Intend(3, "k", false, []byte("x"))
			q.If(op, ver(5))
			q.Made(op, ver(7))
			q.Made(op, ver(8))
			q.held(rec(7, "x", 5), 0)
			q.held(rec(8, "x", 5), 1)
		}, []string{"was made anew"}},
	} {
		q := newQuorums()
		q.write(one, true, 0, 1)
		c.do(q)
		t.Run(c.what, func(t *testing.T) { q.says(t, nil, c.want...) })
	}
}

// Who leaves a shard has given what it held to a majority of the new hosts.
func TestLeaving(t *testing.T) {
	for _, c := range []struct {
		what  string
		hosts []int
		since bool // it has come to the one that leaves since that goes by the row
		fail  int
		want  []string
	}{
		{"two of three have it", []int{0, 1, 2}, false, 4, nil},
		{"one of three has it", []int{0, 1}, false, 4, []string{`handover: node 0: "k": it has dropped shard 1`}},
		{"one of three has it, and gave it", []int{1, 0}, true, 4, nil},
		{"another one had it, and failed", []int{0, 1}, false, 2, nil},
	} {
		q := newQuorums()
		if !c.since {
			q.write(rec(5, "v"), false, c.hosts...)
		}
		q.goes(0, 2, "b", "a", []int{1, 2, 3}, []int{1, 2, 3})
		if c.since {
			q.write(rec(5, "v"), false, c.hosts...)
		}
		q.Fails(c.fail, true)
		q.Left(0, 1, []dbadapter.Record{*rec(5, "v")})
		if held := q.History.held[0]; len(held) != 0 {
			t.Errorf("node 0 is to hold %v of the shard that it has left", held)
		}
		t.Run(c.what, func(t *testing.T) { q.says(t, nil, c.want...) })
	}
}

func TestLastReads(t *testing.T) {
	one := rec(5, "v")
	for _, c := range []struct {
		found *dbadapter.Record
		why   error
		want  []string
	}{
		{one, nil, nil},
		{nil, errors.New("away"), []string{"a read fails: away"}},
		{nil, nil, []string{"another record than they hold"}},
	} {
		q := newQuorums()
		q.write(one, true, 0, 1)
		q.Last(q.Asks(3, "k", false), c.found, c.why, one)
		q.says(t, nil, c.want...)
	}
}
