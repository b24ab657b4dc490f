package node

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/push"
)

// A member that does not know a newcomer yet hears that there is one by what the others
// pass on of it, though the sets are never quiet: it syncs with the one that passed it on.
func TestPushesOfANewcomerLeadToItsInviter(t *testing.T) {
	ps := newPushers(2, Policy{})
	m := newMachine(3)
	m.Push.On, m.Elapsed = true, func() time.Duration { return ps.elapsed }
	ps.machines = append(ps.machines, m)
	ps.spaces = append(ps.spaces, must(m.join(ps.machines[0], invite(ps.spaces[0], RoleWrite))))
	ps.pushes(0)
	data := ps.write(2)
	ps.must(t, 0, 2, data)
	if verdict, _ := ps.hear(1, 0, data); verdict != push.Ignored {
		t.Fatalf("the push of a newcomer: %d", verdict)
	}
	ps.wait(push.Pause)
	ps.wantSync(t, 1, 0, "at first")
	succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
	ps.done(1, 0, nil)
	wantErr(t, second(get(ps.spaces[1], "k")), nil, "what the newcomer wrote first")
	ps.must(t, 1, 0, ps.write(2))
}

// A node that changes the list of members says at once that there is more, though what is
// written never lets the sets be quiet, and those that hear of the change do not.
func TestChangesOfTheListAreToldAtOnce(t *testing.T) {
	ps := newPushers(3, Policy{})
	succeeds(t, ps.spaces[0].SetRole(t.Context(), ps.machines[2].ID, RoleRead, time.Time{}, false))
	ps.wait(push.Pause) // the last of those that joined was told of just now
	all := ps.pushes(0)
	if kinds(all) != "more" {
		t.Fatalf("the pushes are %q", kinds(all))
	}
	ps.must(t, 1, 0, all...)
	ps.wait(push.Pause)
	ps.wantSync(t, 1, 0, "at first")
	succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
	ps.done(1, 0, nil)
	ps.wait(push.Batch)
	if all := ps.pushes(1); len(all) > 0 {
		t.Errorf("a member that heard of it pushes %q", kinds(all))
	}
}

// What a node had written and not pushed when it was killed, its first sync brings to one
// member; the others hear at once that there is more.
func TestWhatWasNotPushedBeforeARestart(t *testing.T) {
	ps := newPushers(3, Policy{})
	must(put(ps.spaces[1], "k", "v"))
	ps.spaces[1] = ps.machines[1].reopen(ps.spaces[1], false)
	for round, want := range []string{"more", ""} {
		must(put(ps.spaces[0], "l", "w"))
		succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
		ps.wait(push.Batch)
		if all := ps.pushes(1); kinds(all) != want {
			t.Errorf("after sync %d the pushes are %q, want %q", round, kinds(all), want)
		}
	}
}

// What was pushed after the first sync had begun, and before this node could hear it, leads
// to one more: it was not there to be brought.
func TestPushesThatWereMissedBesideTheFirstSync(t *testing.T) {
	ps := newPushers(4, Policy{})
	ps.spaces[0] = ps.machines[0].reopen(ps.spaces[0], false)
	ps.spaces[0].Sets()[0].Pushes().Linked(ps.machines[1].ID)
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "at first")
	ps.write(2)
	ps.write(3)
	ps.done(0, 1, nil)
	for i := 2; i < 4; i++ {
		ps.must(t, 0, 1, ps.write(i))
	}
	ps.wantSync(t, 0, -1, "at once, before others are heard")
	ps.wait(time.Second + push.Pause)
	with := ps.syncs(0)
	if with < 2 {
		t.Fatalf("a sync with %d", with)
	}
	ps.done(0, with, nil)
	ps.wait(time.Minute)
	ps.wantSync(t, 0, -1, "what one sync has brought")
}

// A member that begins to take pushes directly hears how many there were: those that it
// lacks, the last one too, lead to a sync, though the sets are never quiet.
func TestStandingTellsOfEarlierPushes(t *testing.T) {
	ps := newPushers(3, Policy{})
	stands := func(i int) {
		t.Helper()
		for to := range 2 {
			if a, verdict, err := ps.spaces[to].Sets()[0].Arrived(ps.machines[i].ID, ps.spaces[i].Sets()[0].Pushes().Digest().Direct(), true); verdict != push.Taken || err != nil {
				t.Fatalf("%+v, %d, %v", a, verdict, err)
			}
		}
	}
	stands(2)
	ps.wait(time.Second)
	for i := range 2 {
		if with := ps.syncs(i); with >= 0 {
			t.Fatalf("where nothing was pushed: node %d syncs with %d", i, with)
		}
	}
	data := ps.write(2)
	ps.must(t, 0, 2, data)
	must(put(ps.spaces[0], "busy", "v"))
	must(put(ps.spaces[1], "busy", "w"))
	stands(2)
	ps.wait(push.Pause)
	ps.wantSync(t, 0, -1, "a member that lacks nothing")
	ps.wantSync(t, 1, 2, "a member that lacks the last push")
}
