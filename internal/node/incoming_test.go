package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A push that was examined and not yet committed is held to a list of members and to a
// pause that have come meanwhile, as a sync is.
func TestArrivalsAreExaminedAgain(t *testing.T) {
	for what, change := range map[string]func(ps *pushers) error{
		"removal": func(ps *pushers) error { return ps.spaces[0].Remove(context.Background(), ps.machines[1].ID, false) },
		"pause":   func(ps *pushers) error { return ps.spaces[0].SetPaused(true) },
		"none":    func(*pushers) error { return nil },
	} {
		ps := newPushers(3, Policy{})
		ps.machines[1].clock = noon.Add(time.Second) // later than the removal
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(5 * time.Millisecond)
		a, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[2].ID, ps.pushes(1)[0], false)
		if verdict != push.Taken {
			t.Fatal(what, verdict, err)
		}
		if err := change(ps); err != nil {
			t.Fatal(what, err)
		}
		if err := ps.spaces[0].Sets()[0].CommitArrivals(context.Background(), []*Arrival{a}); err != nil {
			t.Fatal(what, err)
		}
		if _, err := get(ps.spaces[0], "k"); (err == nil) != (what == "none") {
			t.Errorf("%s: what was pushed is held: %v", what, err == nil)
		}
	}
}

// A driver that takes no pushes does not make them pile up.
func TestPushesThatNobodyTakesAreBounded(t *testing.T) {
	ps := newPushers(2, Policy{Unsigned: true})
	for i := range 200 {
		ps.wait(time.Second)
		must(put(ps.spaces[1], fmt.Sprint("k", i), strings.Repeat("x", 60_000)))
	}
	if n := ps.spaces[1].Sets()[0].Pushes().Queued(); n > 65*wire.MaxPush {
		t.Errorf("%d bytes wait", n)
	}
	if all := ps.pushes(1); !strings.HasSuffix(kinds(all), "records more") {
		t.Errorf("the pushes are %s", kinds(all))
	}
}

// The driver hears of each list of members once it counts, also after other changes.
func TestPushableAfterAChangeOfMembers(t *testing.T) {
	ps := newPushers(2, Policy{})
	must(put(ps.spaces[0], "k", "v")) // the set is stirred from now on
	told := false
	ps.machines[0].Pushable = func(set *Set) { told = told || !set.ns.Members().Has(ps.machines[1].ID, RoleRead) }
	succeeds(t, ps.spaces[0].Remove(context.Background(), ps.machines[1].ID, false))
	if !told {
		t.Error("the driver did not hear of the removal")
	}
}
