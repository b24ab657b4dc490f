package testnet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/testnet/internal/check"
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
	if last := res.Series[len(res.Series)-1]; last.Up != 2 || last.Sets != 1 || last.Records != 1 { // the tombstone is gone
		t.Errorf("in the end %+v", last)
	}
}

func BenchmarkRun(b *testing.B) {
	sessions, frames := 0, 0
	for i := range b.N {
		p := plan.Generate(uint64(i), plan.Mixed, 0)
		res, err := run(b.Context(), &p)
		if err != nil {
			b.Fatal(err)
		}
		sessions += res.Sessions
		frames += res.Frames
	}
	b.ReportMetric(float64(sessions)/float64(b.N), "sessions/op")
	b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
}

// The JSON has the fields that scripts rely on, and lists are never null.
func TestResultJSON(t *testing.T) {
	res, err := Run(t.Context(), Config{Scenario: "name tiny\nnodes 2\nseed 9\nat 1s put 0 a \"x\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	hash, _ := fields["trace_hash"].(string)
	violations, isList := fields["violations"].([]any)
	if fields["nodes"] != 2.0 || fields["seed"] != 9.0 || fields["scenario"] != "tiny" || fields["tier"] != "A" || fields["converged"] != true ||
		!isList || len(violations) != 0 || len(hash) != 32 || fields["virtual_ms"] == 0.0 || fields["wall_ms"] == nil {
		t.Errorf("%s", b)
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		nodes  int // 0: it is refused
		seed   uint64
	}{
		"drawn":                 {Config{Seed: 4}, plan.Generate(4, plan.Mixed, 0).Nodes, 4},
		"drawn, calm":           {Config{Seed: 4, Profile: "calm"}, plan.Generate(4, plan.Calm, 0).Nodes, 4},
		"drawn, more nodes":     {Config{Seed: 4, Nodes: 9}, 9, 4},
		"drawn, one node":       {Config{Seed: 4, Nodes: 1}, 0, 0},
		"drawn, too many":       {Config{Seed: 4, Nodes: 1001}, 0, 0},
		"scenario":              {Config{Scenario: "nodes 3\nseed 5\n"}, 3, 5},
		"scenario, other seed":  {Config{Scenario: "nodes 3\nseed 5\n", Seed: 6, Nodes: 4}, 4, 6},
		"unknown profile":       {Config{Profile: "wild"}, 0, 0},
		"not a scenario":        {Config{Scenario: "at 1s explode 0\n"}, 0, 0},
		"fewer nodes than used": {Config{Scenario: "nodes 3\nat 1s put 2 k \"v\"\n", Nodes: 2}, 0, 0},
	} {
		res, err := Run(t.Context(), c.config)
		if (err == nil) != (c.nodes > 0) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (res.Nodes != c.nodes || res.Seed != c.seed || !res.Passed()) {
			t.Errorf("%s: %d nodes, seed %d, unmet %v, violations %v", name, res.Nodes, res.Seed, res.Unmet, res.Violations)
		}
	}
}

// A run ends with its context.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	p := plan.Generate(1, plan.Mixed, 0)
	r := newRunner(ctx, &p)
	defer r.cluster.Close()
	r.world.At(2*time.Second, func() { cancel(why) })
	if err := r.live(); !errors.Is(err, why) || r.world.Now() > 3*time.Second {
		t.Errorf("%v after %s", err, r.world.Now())
	}
}

// A panic of the code under test is a violation, and names its place.
func TestPanicIsFound(t *testing.T) {
	p := plan.Generate(1, plan.Calm, 0)
	r := newRunner(t.Context(), &p)
	r.world.At(10*time.Second, func() { panic("planted") })
	if err := r.live(); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, v := range r.result.Violations {
		found = found || v.Rule == rulePanic && strings.Contains(v.Text, "planted") && strings.Contains(v.Text, "TestPanicIsFound")
	}
	if !found {
		t.Error(r.result.Violations)
	}
}

// A run whose nodes are not equal after the settling time has not converged, and
// its violations say why.
func TestNotConverged(t *testing.T) {
	p, err := plan.Parse("nodes 2\nnet delay=10s\nat 1s put 0 k \"v\"\nsettle 1s\n")
	if err != nil {
		t.Fatal(err)
	}
	res, err := run(t.Context(), &p)
	if err != nil || res.Converged || res.Passed() || res.SettledMS != -1 {
		t.Errorf("%+v, %v", res, err)
	}
	for _, v := range res.Violations {
		if v.Rule != check.Equal {
			t.Error(v)
		}
	}
}

// If the second sync of a pair fails, the rule idle is broken.
func TestIdleMustSync(t *testing.T) {
	for _, cut := range []bool{false, true} {
		p := plan.Plan{Nodes: 2, Skew: plan.DefaultSkew}
		r := newRunner(t.Context(), &p)
		defer r.cluster.Close()
		for _, n := range r.cluster.Nodes() {
			if err := n.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.cluster.Found(true); err != nil {
			t.Fatal(err)
		}
		if cut {
			r.net.Cut(0, 1)
		}
		if err := r.idle(); err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(r.own, func(v Violation) bool { return v.Rule == check.Idle })
		if found != cut {
			t.Errorf("cut %v: %v", cut, r.own)
		}
	}
}
