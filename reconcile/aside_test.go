package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// line is an admission that runs only when the session waits for it, the last that was
// begun first.
type line struct {
	admit  func([]dbadapter.Record) ([]Verdict, error)
	begun  []func() // in order; nil: it runs, or has run
	left   int      // how many have not run
	most   int      // of left, at a time
	ran    int
	failAt int // the number of the admission that fails; 0: none
}

var errDisk = errors.New("the disk is full")

func (q *line) Admit(records []dbadapter.Hashed) func() ([]Verdict, error) {
	return func() ([]Verdict, error) {
		q.ran++
		q.left--
		if q.ran == q.failAt {
			return nil, errDisk
		}
		return admitting(q.admit)(records)()
	}
}

func (q *line) Aside(fn func()) (wait func()) {
	place := len(q.begun)
	q.begun = append(q.begun, fn)
	q.left++
	q.most = max(q.most, q.left)
	return func() {
		for last := len(q.begun) - 1; q.begun[place] != nil; last-- {
			if fn := q.begun[last]; fn != nil {
				q.begun[last] = nil
				fn()
			}
		}
	}
}

// Frames are checked and committed while others come, up to a bound, and in any order; all
// have ended when the session has. An error of one ends the session, what the others let
// in is kept and reported.
func TestAdmittedAside(t *testing.T) {
	for _, method := range []string{"sketch", "all"} {
		for failAt := range 5 {
			t.Run(fmt.Sprintf("%s, admission %d fails", method, failAt), func(t *testing.T) {
				sa, sb := newSide(t, "a", nil), newSide(t, "b", nil)
				version := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}
				const many = 8 << 10
				for i := range many {
					sb.put(dbadapter.Record{Key: fmt.Appendf(nil, "%07d", i), Value: make([]byte, 600), Version: version})
				}
				own := 0
				if method == "sketch" {
					sa.put(dbadapter.Record{Key: []byte("mine"), Version: version})
					own++
				}
				q := &line{admit: sa.admit, failAt: failAt}
				oa := sa.options(sb, Options{})
				oa.Admit, oa.Aside = q.Admit, q.Aside
				va, vb := sa.open(), sb.open()
				defer va.Close()
				defer vb.Close()
				here, there := Initiate(va, oa), Respond(opening(vb), sb.options(sa, Options{}))
				defer here.Close()
				defer there.Close()
				carry(t, here, there, &outcome{}, nil)
				report, err := here.Report(), here.Err()
				if (err == nil) != (failAt == 0) || failAt > 0 && !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
				if slices.ContainsFunc(q.begun, func(fn func()) bool { return fn != nil }) {
					t.Error("the session is over, and an admission waits")
				}
				held := len(sa.dump()) - own
				if report.Applied != held || failAt == 0 && held != many {
					t.Errorf("%d records are reported as applied, %d were", report.Applied, held)
				}
				if q.most < 4 || q.most > asideBytes/wire.BatchBytes+1 || q.most == len(q.begun) {
					t.Errorf("%d admissions at a time, of %d", q.most, len(q.begun))
				}
			})
		}
	}
}

// What admissions hold is bounded, however small the records and the frames are: a
// goroutine each, and what is held under the indices of their records, which a store reads
// to compare.
func TestAsideIsBounded(t *testing.T) {
	for name, held := range map[string]int64{"nothing is held": 0, "large records are held": besideBytes / 8} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, "a", nil)
			q := &line{admit: s.admit}
			r := receiver{link: newLink(&Session{}, Options{Admit: q.Admit, Aside: q.Aside}, func(Event) bool { return true })}
			var arrived []arrival
			const many = 100
			for i := range many {
				hashed, err := dbadapter.Hash(s.keys.Hasher, dbadapter.Record{Key: fmt.Append(nil, i), Deleted: true, Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}})
				if err != nil {
					t.Fatal(err)
				}
				arrived = append(arrived, arrival{Hashed: hashed, beside: held})
			}
			for i := range arrived { // frames of one record
				if err := r.apply(arrived[i : i+1]); err != nil {
					t.Fatal(err)
				}
			}
			most := mostAside
			if held > 0 {
				most = int(besideBytes / held)
			}
			if q.most != most {
				t.Errorf("%d admissions at a time, not %d", q.most, most)
			}
			if err := r.settle(); err != nil || r.applied != many || r.aside != (taken{}) {
				t.Errorf("%d records are applied, and %+v is taken: %v", r.applied, r.aside, err)
			}
		})
	}
}
