package peer

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Of many lines with one cause a few are written, with the number of those that
// were not; other causes are not held back by them.
func TestRefusalLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		log := slog.New(slog.NewTextHandler(&b, nil))
		var r refusalLog
		flood := func(message string) (lines []string) {
			b.Reset()
			for range 1000 {
				r.write(log, slog.LevelInfo, message, slog.Int("attr", 1))
			}
			return strings.Split(strings.TrimSpace(b.String()), "\n")
		}
		for _, message := range []string{"one", "another"} {
			if got := flood(message); len(got) != refusalLogBurst || strings.Contains(got[0], "suppressed") {
				t.Errorf("%d lines at first: %q", len(got), got)
			}
		}
		time.Sleep(refusalLogPause)
		got := flood("one")
		if len(got) != 1 || !strings.Contains(got[0], "attr=1 suppressed=995") {
			t.Errorf("after a pause: %q", got)
		}
		r.write(log, slog.LevelDebug, "not enabled")
		time.Sleep(time.Hour)
		got = flood("one")
		if len(got) != refusalLogBurst || !strings.Contains(got[0], "suppressed=999") || strings.Contains(got[1], "suppressed") {
			t.Errorf("after an hour: %q", got)
		}
		if len(r.causes) != 2 {
			t.Errorf("%d causes", len(r.causes))
		}
	})
}
