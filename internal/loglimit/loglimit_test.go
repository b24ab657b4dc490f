package loglimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/internal/loglimit"
)

// TestLines: of many lines with one cause a few are written, with the number of those that
// were not. What is another cause, and what is not, is in the table.
func TestLines(t *testing.T) {
	distinct := func(a slog.Attr) bool { return a.Key == "peer" }
	for name, test := range map[string]struct {
		line func(log *slog.Logger, i int)
		want int // causes
	}{
		"one text":            {func(log *slog.Logger, _ int) { log.Warn("failed") }, 1},
		"numbers in a text":   {func(log *slog.Logger, i int) { log.Warn(fmt.Sprintf("open 00%d.sst failed", i)) }, 1},
		"another error":       {func(log *slog.Logger, i int) { log.Warn("failed", "error", fmt.Sprint(i)) }, 1},
		"two texts":           {func(log *slog.Logger, i int) { log.Warn([]string{"one", "two"}[i%2]) }, 2},
		"two levels":          {func(log *slog.Logger, i int) { log.Log(t.Context(), slog.Level(4*(i%2)), "sync") }, 2},
		"two peers":           {func(log *slog.Logger, i int) { log.Info("refused", "peer", i%2) }, 2},
		"two peers, by With":  {func(log *slog.Logger, i int) { log.With("peer", i%2).WithGroup("g").Info("refused", "n", i) }, 2},
		"more than are known": {func(log *slog.Logger, i int) { log.Info("refused", "peer", i%6000) }, 4096 + 1},
		"those not written":   {func(log *slog.Logger, _ int) { log.Debug("failed") }, 0},
	} {
		t.Run(name, virtually(func(t *testing.T) {
			var b bytes.Buffer
			log := slog.New(loglimit.New(slog.NewTextHandler(&b, nil), distinct))
			const each = 40
			times := each * max(1, test.want)
			if test.want > 4096 {
				times = 6000 * each
			}
			flood := func() (lines, leftOut int) {
				b.Reset()
				for i := range times {
					test.line(log, i)
				}
				return strings.Count(b.String(), "\n"), strings.Count(b.String(), loglimit.LeftOut)
			}
			for _, round := range []struct {
				after         time.Duration
				each, leftOut int
			}{{0, loglimit.Burst, 0}, {loglimit.Pause, 1, 1}, {loglimit.Pause - 1, 0, 0}, {1, 1, 1}} {
				time.Sleep(round.after)
				if lines, leftOut := flood(); lines != round.each*test.want || leftOut != round.leftOut*test.want {
					t.Errorf("after %s: %d lines, %d with a count; want %d and %d of %d causes", round.after, lines, leftOut, round.each, round.leftOut, test.want)
				}
			}
			if time.Sleep(time.Hour); test.want == 1 {
				if lines, leftOut := flood(); lines != loglimit.Burst || leftOut != 1 || !strings.Contains(b.String(), fmt.Sprintf("%s=%d\n", loglimit.LeftOut, each-1)) {
					t.Errorf("after an hour: %s", &b)
				}
			}
		}))
	}
}

// virtually runs a test in a time that passes while all sleep.
func virtually(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// TestForgotten: causes of long ago make room for others.
func TestForgotten(t *testing.T) { virtually(forgotten)(t) }

func forgotten(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(loglimit.New(slog.NewTextHandler(&b, nil), func(slog.Attr) bool { return true }))
	for i := range 3 * 5000 {
		if i%5000 == 0 {
			time.Sleep(time.Hour)
			b.Reset()
		}
		log.Info("refused", "peer", i)
		if i%5000 == 4095 && strings.Count(b.String(), "\n") != 4096 {
			t.Fatalf("after %d causes: %d lines", i+1, strings.Count(b.String(), "\n"))
		}
	}
}
