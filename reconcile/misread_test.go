package reconcile

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// misread makes checksums whose times are those of no record: which of two is the
// newer is luck.
type misread struct{ dbadapter.Hasher }

func (m misread) Checksum(index dbadapter.Index, latest dbadapter.Timestamp, digests []dbadapter.Digest) dbadapter.Checksum {
	c := m.Hasher.Checksum(index, latest, digests)
	if c == 0 {
		return 0
	}
	rng := rand.New(rand.NewPCG(uint64(c), uint64(latest)))
	return m.Hasher.Checksum(index, dbadapter.Timestamp(rng.Uint64N(1<<62)), digests)
}

// The times in checksums say what is likely to be sent in vain, and nothing else: where they
// are wrong, both sides end with the newest of all records, and say so.
func TestSyncWithMisreadTimes(t *testing.T) {
	for seed := range uint64(120) {
		rng := seeded(t, seed)
		var hasher dbadapter.Hasher = misread{dbadapter.NewHasher(testSecret)}
		if seed%3 == 0 {
			hasher = storetest.Weak(hasher, 1+rng.IntN(8))
		}
		a, b := newSide(t, "a", hasher), newSide(t, "b", hasher)
		spread := int64([]time.Duration{time.Second, time.Hour}[rng.IntN(2)])
		for i := range 1 + rng.IntN(120) {
			for _, s := range []*side{a, b} {
				if rng.IntN(4) == 0 {
					continue
				}
				size := []int{20, 20, 1200}[rng.IntN(3)]
				r := record(fmt.Sprint("k", i), strings.Repeat(string(rune('a'+rng.IntN(2))), size), at(time.Duration(rng.Int64N(spread))))
				r.Version.Incarnation = rng.Uint64()
				if r.Deleted = rng.IntN(6) == 0; r.Deleted {
					r.Value = nil
				}
				s.put(r)
			}
		}
		newest := merge(a.dump(), b.dump())
		out := synced(t, a, b, Options{}, nil)
		wantEqual(t, a, b)
		if !reflect.DeepEqual(a.dump(), newest) {
			t.Errorf("seed %d: a record was lost to an older one", seed)
		}
		if !out.a.Verified || !out.b.Verified {
			t.Errorf("seed %d: not verified", seed)
		}
	}
}
