package testnet

import (
	"runtime"
	"testing"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// A seed leaves the same trace with any number of processors. tools/golden-cross.sh
// compares the log with that of other processors.
func TestTraces(t *testing.T) {
	trace := func(seed uint64, processors int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		p := plan.Generate(seed, plan.Mixed, 0)
		res, err := run(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		return *res.TraceHash
	}
	for seed := range uint64(4) {
		one, four := trace(seed, 1), trace(seed, 4)
		if one != four {
			t.Errorf("seed %d: one processor leaves the trace %s, four leave %s", seed, one, four)
		}
		t.Logf("trace of seed %d: %s", seed, one)
	}
}
