package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// smallBulk lets small sets go in parts.
var smallBulk = syncing.Bulk{PartsFrom: 200, PartSize: 60, Turn: 30}

// halves are two nodes of a crew that hold many records each that the other lacks.
func halves(t *testing.T, differ int) *crew {
	t.Helper()
	c := newCrew(t, 2)
	for i := range c.machines {
		c.machines[i].Bulk = smallBulk
	}
	for i := range 50 {
		c.put(0, fmt.Sprint("common/", i), "1")
	}
	c.round()
	for i := range differ {
		c.put(0, fmt.Sprint("x/a/", i), "1")
		c.put(1, fmt.Sprint("x/b/", i), "1")
	}
	return c
}

func (c *crew) sync(ask syncing.Ask) (mine, theirs reconcile.Report, err error) {
	return c.machines[0].syncPart(&c.ns[0].Sets()[0].Part, c.machines[1], ask)
}

func (c *crew) equal() bool { return slices.Equal(c.keys(0), c.keys(1)) }

// A large sync goes in parts; the report is that of the whole.
func TestParts(t *testing.T) {
	c := halves(t, 300)
	c.put(0, "common/1", "2")
	mine, _, err := c.sync(syncing.Ask{DryRun: true})
	if err != nil || !mine.Verified || mine.Method != wire.MethodParts || mine.MissingHere != 300 || mine.MissingThere != 300 || mine.Mismatched != 1 || mine.ForecastBytes == 0 {
		t.Errorf("a dry run: %+v, %v", mine, err)
	}
	if c.equal() {
		t.Fatal("a dry run has moved records")
	}
	mine, _, err = c.sync(syncing.Ask{})
	if err != nil || !mine.Verified || mine.Method != wire.MethodParts || mine.Applied != 300 || mine.Sent != 301 || mine.Rejected != 0 {
		t.Errorf("%+v, %v", mine, err)
	}
	if mine.Parts < 6 || mine.PartsDone != mine.Parts || mine.Split != nil {
		t.Errorf("%d parts, %d of them over", mine.Parts, mine.PartsDone)
	}
	if !c.equal() {
		t.Error("the sets differ")
	}
	if mine, _, err = c.sync(syncing.Ask{}); err != nil || mine.Method != wire.MethodSame || mine.Parts != 0 {
		t.Errorf("once more: %+v, %v", mine, err)
	}
}

// A prefix that differs much goes in parts, too.
func TestPartsOfAPrefix(t *testing.T) {
	c := halves(t, 300)
	c.put(0, "other", "1")
	c.machines[0].scanned, c.machines[1].scanned = 0, 0
	mine, _, err := c.sync(syncing.Ask{Prefix: []byte("x/")})
	if err != nil || mine.Method != wire.MethodParts || mine.Applied != 300 || mine.Sent != 300 || !mine.Verified {
		t.Errorf("%+v, %v", mine, err)
	}
	// The syncs of the whole look at all keys with the prefix, of which there are 600 at the end.
	// The parts together look at what is held, at most.
	for i, m := range c.machines {
		if m.scanned > 300+651+600 {
			t.Errorf("node %d has scanned %d records in %d parts", i, m.scanned, mine.Parts)
		}
	}
	if here, there := len(c.keys(0)), len(c.keys(1)); here != 651 || there != 650 {
		t.Errorf("%d and %d records", here, there)
	}
}

// In one direction each part leaves what may not travel, and the sync ends.
func TestPartsInOneDirection(t *testing.T) {
	for direction, want := range map[wire.Direction][2]int{wire.Pull: {650, 350}, wire.Push: {350, 650}} {
		c := halves(t, 300)
		for range 2 {
			mine, _, err := c.sync(syncing.Ask{Direction: direction})
			if err != nil || mine.Method != wire.MethodParts || mine.Verified {
				t.Errorf("%v: %+v, %v", direction, mine, err)
			}
			if got := [2]int{len(c.keys(0)), len(c.keys(1))}; got != want {
				t.Errorf("%v: %v records", direction, got)
			}
		}
	}
}

// What is declined does not keep the rest of its part, or another part, and the sync
// comes to an end.
func TestPartsDeclined(t *testing.T) {
	c := halves(t, 300)
	c.machines[1].clock = c.machines[1].clock.Add(-c.ns[0].Members().Policy().MaxSkew * 2) // the clock of the one that declines
	mine, _, err := c.sync(syncing.Ask{})
	if !errors.Is(err, syncing.ErrRejected) || mine.Verified || mine.Rejected != 300 || mine.Applied != 300 {
		t.Errorf("%+v, %v", mine, err)
	}
	if here, there := len(c.keys(0)), len(c.keys(1)); here != 650 || there != 350 {
		t.Errorf("%d and %d records", here, there)
	}
}

// A sync that is cut at any moment goes on where it was: each attempt moves records,
// none travels twice but for those on the way, and at the end both sides are equal.
func TestPartsCut(t *testing.T) {
	c := halves(t, 300)
	cut := errors.New("cut")
	sent, attempts := 0, 0
	for ; ; attempts++ {
		if attempts > 50 {
			t.Fatal("no end")
		}
		batches, side := 0, attempts%2
		c.machines[side].apply = func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			if batches++; batches > 3 {
				return nil, cut
			}
			return ns.Apply(context.Background(), writes)
		}
		c.machines[1-side].apply = nil
		before := len(c.keys(0)) + len(c.keys(1))
		mine, theirs, err := c.sync(syncing.Ask{})
		sent += mine.Sent + theirs.Sent
		if err == nil {
			if !mine.Verified || !c.equal() {
				t.Errorf("%+v", mine)
			}
			break
		}
		if after := len(c.keys(0)) + len(c.keys(1)); after <= before {
			t.Errorf("attempt %d: %d records after %d (%v)", attempts, after, before, err)
		}
	}
	if attempts < 3 || sent > 600+60*attempts {
		t.Errorf("%d records were sent in %d attempts", sent, attempts)
	}
}
