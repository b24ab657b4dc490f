package watermark

import (
	"bytes"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// A note of what waits is cut off a summary as it was added; what has none is refused.
func TestNote(t *testing.T) {
	for _, n := range []Note{{}, {known: true}, {known: true, list: roster.Digest{1, 2}, found: Found{3, 4, 1 << 60}}} {
		b := n.Append([]byte("summary"))
		summary, got, err := CutNote(b)
		if err != nil || !bytes.Equal(summary, []byte("summary")) || got != n {
			t.Errorf("%+v: %q, %+v, %v", n, summary, got, err)
		}
	}
	for _, b := range [][]byte{nil, {}, {1}, {2}, append(make([]byte, noteSize-2), 1)} {
		if _, n, err := CutNote(b); err == nil || n.known {
			t.Errorf("%v is read as %+v", b, n)
		}
	}
}

// A sweep is due for what is not later than the watermark, and takes a part of the time only.
func TestSweepDue(t *testing.T) {
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var w Waiting
	if !w.SweepDue(0, begun, false) {
		t.Error("no sweep has looked yet")
	}
	w.Begin(begun)
	ended := begun.Add(10 * time.Second)
	w.End(Found{2, 100, 200}, true, ended)
	for name, c := range map[string]struct {
		mark   uint64
		after  time.Duration
		urgent bool
		want   bool
	}{
		"nothing may go":                   {99, time.Hour, false, false},
		"the last sweep was long":          {150, 189 * time.Second, false, false},
		"it is a twentieth of the time":    {150, 190 * time.Second, false, true},
		"a peer is ahead":                  {150, 10 * time.Second, true, true},
		"a peer is ahead, of a sweep ago":  {150, 9 * time.Second, true, false},
		"it takes out all":                 {200, 10 * time.Second, false, true},
		"the clock was set back by a day":  {150, -24 * time.Hour, false, true},
		"the clock was set back by a bit":  {150, -time.Second, false, false},
		"nothing may go, and a peer ahead": {99, time.Hour, true, false},
	} {
		if got := w.SweepDue(dbadapter.Timestamp(c.mark), ended.Add(c.after), c.urgent); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if w.Again(); !w.SweepDue(0, ended.Add(time.Hour), false) {
		t.Error("a sweep was asked for")
	}
}
