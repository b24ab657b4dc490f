package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Two nodes that write and sync are equal in the end.
func TestThinPath(t *testing.T) {
	res, err := Run(t.Context(), Config{Scenario: `
nodes 2
every 2s
at 1s put 0 a "one"
at 2s put 1 b "two"
at 3s del 1 b
at 4s sync 0>1
`})
	if err != nil || !res.Passed() || !res.Converged {
		t.Fatalf("%+v, %v", res, err)
	}
	if last := res.Series[len(res.Series)-1]; last.Up != 2 || last.Sets != 1 || last.Records != 2 {
		t.Errorf("in the end %+v", last)
	}
}

func BenchmarkRun(b *testing.B) {
	sessions, frames := 0, 0
	for i := range b.N {
		p := plan.Generate(uint64(i), plan.Mixed)
		res, err := run(b.Context(), &p, nil)
		if err != nil {
			b.Fatal(err)
		}
		sessions += res.Sessions
		frames += res.Frames
	}
	b.ReportMetric(float64(sessions)/float64(b.N), "sessions/op")
	b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
}
