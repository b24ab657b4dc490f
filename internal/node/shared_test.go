package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// What a driver runs at once: writes, batches, imports, admissions, syncs and
// changes of members of one namespace. Each acknowledged write is there, and
// both nodes come to hold the same. (The race detector watches.)
func TestNamespaceIsShared(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	for _, m := range []*machine{a, b} {
		m.Each = func(k int, fn func(i int)) {
			var wg sync.WaitGroup
			for i := range k {
				wg.Go(func() { fn(i) })
			}
			wg.Wait()
		}
	}
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	const rounds = 30
	var wg sync.WaitGroup
	run := func(fn func(i int) error) {
		wg.Go(func() {
			for i := range rounds {
				wantErr(t, fn(i), nil, fmt.Sprint("round ", i))
			}
		})
	}
	for w := range 3 {
		run(func(i int) error { return second(put(sa, fmt.Sprint("put", i%7), fmt.Sprint(w, i))) })
	}
	run(func(i int) error { return second(put(sa, fmt.Sprint("alone", i), "")) })
	run(func(i int) error {
		return second(commit(sa.Sets()[0].Write(draft(fmt.Sprint("batch", i), ""), draft("put0", ""))))
	})
	run(func(i int) error {
		return second(importAll(sa, []Item{{Key: fmt.Append(nil, "dated", i), Time: noon}, {Key: fmt.Append(nil, "import", i)}}))
	})
	run(func(i int) error {
		good := signedBy(2, sa, dbadapter.Record{Key: fmt.Append(nil, "admitted", i), Version: at(2, 0)})
		bad := dbadapter.Record{Key: fmt.Append(nil, "refused", i), Version: at(2, 0)}
		_, err := sa.Sets()[0].Admit(context.Background(), b.ID, 0, noTerm, hashed(sa, good, bad))()
		return err
	})
	run(func(i int) error {
		sa.Sets()[0].Rejected()
		sa.Ahead()
		a.Schedule.Round(context.Background(), &countedRounds{a, nil, 0}, a.Partners(a.IsMember))
		return setRole(sa, idOf(10+i), RoleRead)
	})
	run(func(i int) error { return second(sa.Invite(membership.InviteOptions{}, [][]byte{{1}})) })
	run(func(i int) error { return second(put(sb, fmt.Sprint("put", i%7), fmt.Sprint(i))) })
	for _, s := range []struct {
		from, to *machine
		ns       *Namespace
	}{{a, b, sa}, {b, a, sb}} {
		run(func(i int) error {
			_, _, err := s.from.sync(s.ns, s.to, syncing.Ask{})
			if errors.Is(err, reconcile.ErrBusy) {
				return nil // it yielded
			}
			return err
		})
	}
	wg.Wait()
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	if fmt.Sprint(keysAndVersions(sa)) != fmt.Sprint(keysAndVersions(sb)) {
		t.Error("the sets differ")
	}
	for i := range rounds {
		for _, key := range []string{"alone", "batch", "dated", "import", "admitted"} {
			succeeds(t, second(get(sb, fmt.Sprint(key, i))))
		}
	}
	if got := len(sa.Members().Members()); got != 2+rounds || sa.Sets()[0].RejectedCount() != rounds {
		t.Errorf("%d members, %d rejections", got, sa.Sets()[0].RejectedCount())
	}
}

func keysAndVersions(ns *Namespace) (out []string) {
	for _, r := range records(ns) {
		out = append(out, fmt.Sprintf("%s %s %x", r.Key, r.Version, r.Value))
	}
	return out
}
