package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// line is an admission whose commits run only when the session waits for them. It
// notes what happens, in order.
type line struct {
	events  []string
	checked int
	running bool
	left    int // of what was begun
	t       *testing.T
	admit   func([]dbadapter.Record) ([]Verdict, error)
	failAt  int // the number of the commit that fails; 0: none
}

var errDisk = errors.New("the disk is full")

func (q *line) Admit(records []dbadapter.Hashed) func() ([]Verdict, error) {
	q.checked++
	number := q.checked
	q.events = append(q.events, fmt.Sprint("check ", number))
	return func() ([]Verdict, error) {
		if q.running {
			q.t.Error("a commit began before the one before it had ended")
		}
		q.running = true
		defer func() { q.running = false }()
		q.events = append(q.events, fmt.Sprint("commit ", number))
		if number == q.failAt {
			return nil, errDisk
		}
		return admitting(q.admit)(records)()
	}
}

func (q *line) Aside(fn func()) (wait func()) {
	over := false
	q.left++
	return func() {
		if !over {
			over = true
			fn()
			q.left--
		}
	}
}

// The records of two more frames are checked while one commits, commits follow one
// another in order, and all have ended when the session has. An error of one ends
// the session; what came before it is kept and reported.
func TestCheckedWhileOneCommits(t *testing.T) {
	for _, method := range []string{"sketch", "all"} {
		for failAt := range 4 {
			t.Run(fmt.Sprintf("%s, commit %d fails", method, failAt), func(t *testing.T) {
				sa, sb := newSide(t, "a", nil), newSide(t, "b", nil)
				version := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}
				for i := range 1 << 12 {
					sb.put(dbadapter.Record{Key: fmt.Appendf(nil, "%07d", i), Value: make([]byte, 600), Version: version})
				}
				own := 0
				if method == "sketch" {
					sa.put(dbadapter.Record{Key: []byte("mine"), Version: version})
					own++
				}
				q := &line{t: t, admit: sa.admit, failAt: failAt}
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
				if q.left > 0 {
					t.Error("the session is over, and a commit runs")
				}
				want := []string{"check 1", "check 2"}
				for i := 3; i <= q.checked; i++ {
					want = append(want, fmt.Sprint("check ", i), fmt.Sprint("commit ", i-2))
				}
				if failAt == 0 {
					want = append(want, fmt.Sprint("commit ", q.checked-1), fmt.Sprint("commit ", q.checked))
				}
				if q.checked < 4 && failAt == 0 || !slices.Equal(q.events, want) {
					t.Errorf("%v, want %v", q.events, want)
				}
				if held := len(sa.dump()) - own; report.Applied != held {
					t.Errorf("%d records are reported as applied, %d were", report.Applied, held)
				}
			})
		}
	}
}
