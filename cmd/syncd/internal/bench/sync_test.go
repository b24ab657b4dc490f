package bench

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMedians(t *testing.T) {
	got, err := medians([]api.Report{
		{Method: "a", Report: reconcile.Report{Cells: 5, DurationMS: 3, StepsMS: map[string]float64{"peel": 1, "fetch": 9}}},
		{Method: "b", Report: reconcile.Report{Cells: 1, DurationMS: 1, StepsMS: map[string]float64{"peel": 7}}},
		{Method: "c", Report: reconcile.Report{Cells: 3, DurationMS: 2, Verified: true, StepsMS: map[string]float64{"peel": 4, "fetch": 2}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Cells != 3 || got.DurationMS != 2 || got.Method != "c" || !got.Verified || got.StepsMS["peel"] != 4 || got.StepsMS["fetch"] != 2 {
		t.Errorf("got %+v", got)
	}
	if got, err := medians([]reconcile.Report{{Cells: 1}, {Cells: 2}}); err != nil || got.Cells != 1 {
		t.Errorf("of two, got %d, %v; want the lower one", got.Cells, err)
	}
}

// TestSync: each kind of difference is made as often as it was asked for.
func TestSync(t *testing.T) {
	for kind, want := range map[Kind][3]int{Missing: {5, 5, 0}, Mismatched: {0, 0, 10}, Mixed: {3, 2, 5}} {
		results, err := Sync(t.Context(), Config{
			Sizes: []int{60, 30}, Differences: 10, Kind: kind, ValueSize: 16, Repeat: 2, Seed: 7, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if len(results) != 2 || results[0].Records != 60 || results[1].Records != 30 {
			t.Fatalf("%s: %+v", kind, results)
		}
		for _, r := range results {
			if got := [3]int{r.MissingHere, r.MissingThere, r.Mismatched}; got != want || r.Differences != 10 || r.BuildMS <= 0 {
				t.Errorf("%s: %+v; want the differences %v", kind, r, want)
			}
		}
	}
}
