package watermark

import (
	"os"
	"strconv"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Random histories of an abstract cluster, with the faults that each name says, end
// with equal sets and without tombstones; no collected record is back, no live one
// was kept out by a floor, and no acknowledged one is lost.
func TestWatermarkHistories(t *testing.T) {
	for _, p := range []struct {
		name string
		mPlan
	}{
		{"quiet", mPlan{nodes: 3}},
		{"dated and expiring", mPlan{nodes: 3, dated: true, expiring: true}},
		{"clocks", mPlan{nodes: 3, dated: true, expiring: true, clocks: true}},
		{"newcomers", mPlan{nodes: 2, join: true, clocks: true, dated: true}},
		{"restored", mPlan{nodes: 3, restore: true, dated: true, expiring: true}},
		{"lapsed", mPlan{nodes: 4, lapse: true, expiring: true}},
		{"lapsed, and a reader", mPlan{nodes: 3, lapse: true, reader: true, expiring: true}},
		{"two nodes", mPlan{nodes: 2, lapse: true, restore: true}},
		{"all", mPlan{nodes: 3, restore: true, lapse: true, join: true, clocks: true, dated: true, expiring: true}},
		{"a chain", mPlan{nodes: 5, chain: true, restore: true, lapse: true, dated: true, clocks: true}},
		{"a reader that lies", mPlan{nodes: 4, readerLiar: true}},
		{"a liar", mPlan{nodes: 4, liar: true}},
	} {
		t.Run(p.name, func(t *testing.T) {
			seeds, collects, asides, restamps := histories(), 0, 0, 0
			for seed := range seeds {
				p.steps = 150 + int(seed%3)*150
				c := history(seed, p.mPlan)
				collects, asides, restamps = collects+c.collects, asides+c.asides, restamps+c.restamps
				if len(c.failed) > 0 {
					t.Fatalf("seed %d: %s\n%s", seed, c.failed, c)
				}
			}
			t.Logf("%d histories: %d records collected, %d set aside, %d restamps", seeds, collects, asides, restamps)
			if lies := p.liar; lies && collects+asides > 0 || !lies && collects == 0 {
				t.Errorf("%d records collected, %d set aside", collects, asides)
			}
			if p.clocks && restamps == 0 {
				t.Error("no clock was so far ahead that its node had to restamp")
			}
		})
	}
}

// histories is how many histories each plan runs. SYNCD_HISTORIES asks for another
// number.
func histories() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SYNCD_HISTORIES"), 10, 64); err == nil {
		return n
	}
	if testing.Short() {
		return 50
	}
	return 300
}

// What a floor keeps out, and what a member that only reads takes all the same.
func TestKeepsOut(t *testing.T) {
	for _, c := range []struct {
		name                   string
		floor, version, theirs uint64
		follows, want          bool
	}{
		{"later than the floor", 10, 11, 0, false, false},
		{"as late", 10, 10, 10, false, true},
		{"a writer's peer that has collected as far", 10, 5, 10, false, true},
		{"a reader's", 10, 5, 10, true, false},
		{"a reader's that has collected just as far", 10, 5, 5, true, false},
		{"a reader's that has not", 10, 5, 4, true, true},
		{"a reader's that recovers", 10, 5, uint64(NoFloor), true, true},
	} {
		got := KeepsOut(dbadapter.Timestamp(c.floor), dbadapter.Timestamp(c.version), c.follows, dbadapter.Timestamp(c.theirs))
		if got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
