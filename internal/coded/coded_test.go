package coded

import (
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

var errScan = errors.New("scan")

// A sequence's error goes through, and so does the reader's wish to stop.
func TestPairs(t *testing.T) {
	source := func(yield func(dbadapter.Pair, error) bool) {
		_ = yield(dbadapter.Pair{Index: 1, Checksum: 2}, nil) && yield(dbadapter.Pair{}, errScan)
	}
	var got []rateless.Pair
	var failed error
	for p, err := range Pairs(source) {
		got, failed = append(got, p), err
	}
	if !slices.Equal(got, []rateless.Pair{{Index: 1, Checksum: 2}, {}}) || !errors.Is(failed, errScan) {
		t.Errorf("%v, %v", got, failed)
	}
	for range Pairs(source) {
		break
	}
}

// Look-ups of any sizes use the same buffers.
func TestLookup(t *testing.T) {
	lookup := Lookup(func(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
		for n, i := range indices {
			if i == 99 {
				return errScan
			}
			if i != 3 {
				sums[n] = dbadapter.Checksum(10 * i)
			}
		}
		return nil
	})
	for _, indices := range [][]rateless.Index{{1, 2, 3}, {4}, {3, 5}, nil} {
		sums := make([]rateless.Checksum, len(indices))
		if err := lookup(indices, sums); err != nil {
			t.Fatal(err)
		}
		for n, i := range indices {
			if want := rateless.Checksum(10 * i); i != 3 && sums[n] != want || i == 3 && sums[n] != 0 {
				t.Errorf("under %d of %v: %d", i, indices, sums[n])
			}
		}
	}
	if err := lookup([]rateless.Index{99}, make([]rateless.Checksum, 1)); !errors.Is(err, errScan) {
		t.Errorf("the store's error is %v", err)
	}
}

func TestDifferences(t *testing.T) {
	got := Differences([]rateless.Difference{{Kind: rateless.Mismatched, Index: 1, Theirs: 2, Ours: 3}})
	if !slices.Equal(got, []Difference{{rateless.Mismatched, 1, 2, 3}}) {
		t.Errorf("%+v", got)
	}
}
