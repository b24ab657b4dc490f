package demo

import (
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFindsWhatWasMade, each difference in its kind, for mixtures of all.
func TestFindsWhatWasMade(t *testing.T) {
	for _, c := range []Config{
		{},
		{Records: 1, Missing: 1, Mismatched: 1},
		{Records: 50, Empty: true, Missing: 9, Mismatched: 9},
		{Records: 300, Missing: 300},
		{Records: 300, Mismatched: 300},
		{Records: 1000, Missing: 37, Mismatched: 61},
		{Records: 100},
	} {
		c.ValueSize, c.Seed, c.Logger = 8, 42, slog.New(slog.DiscardHandler)
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if !r.Equal || !r.Verified || r.Found() != r.Expected {
			t.Errorf("%+v: equal %v, verified %v, found %+v of %+v", c, r.Equal, r.Verified, r.Found(), r.Expected)
		}
		if f := r.Forecast; (Differences{f.MissingHere, f.MissingThere, f.Mismatched}) != r.Expected {
			t.Errorf("%+v: diff said %+v; made were %+v", c, f, r.Expected)
		}
		want := c.Records + 2*min(c.Missing, c.Records)
		if c.Empty {
			want = c.Records
		}
		if r.Records != want {
			t.Errorf("%+v: %d records in the end; want %d", c, r.Records, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []Config{
		{Records: -1, ValueSize: 8},
		{Records: MaxRecords + 1, ValueSize: 8},
		{Missing: -1, ValueSize: 8},
		{Mismatched: -1, ValueSize: 8},
		{ValueSize: 7},
		{ValueSize: 1<<20 + 1},
	} {
		if _, err := Run(t.Context(), c); !errors.Is(err, problem.ErrUsage) {
			t.Errorf("%+v: error %v; want a usage error", c, err)
		}
	}
}
