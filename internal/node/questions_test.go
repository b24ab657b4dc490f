package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// carried is a message as the other side reads it.
func carried(m wire.Message) wire.Message {
	got, _, err := wire.Read(bytes.NewBuffer(wire.Append(nil, m)))
	if err != nil {
		panic(err)
	}
	return got
}

// ask asks another machine, as a driver would, for what it holds.
func (m *machine) ask(ns *Namespace, other *machine) error {
	question, err := ns.Sets()[0].Ask(other.ID, time.Second, &wire.AskSet{})
	if err != nil {
		return err
	}
	var said wire.Message
	asked, err := other.Asked(m.ID, carried(question).(*wire.Ask))
	if err == nil {
		defer asked.Done()
		if err = asked.Allowed(); err == nil {
			said = asked.Reply(&wire.SetAnswer{Sum: asked.Set.Sum()}, 0)
		}
	}
	if err != nil {
		said = reconcile.Refusal(err)
	}
	_, err = ns.Sets()[0].Answered(other.ID, question, carried(said))
	return err
}

// A question of a stranger, of a removed member, without the secret, or about another
// namespace gets one answer; of a paused one, and one too many, its own.
func TestQuestionsAreOfMembers(t *testing.T) {
	a, b, stranger := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleRead)))
	other := b.create("other", Policy{})
	q := &wire.AskSet{}
	succeeds(t, b.ask(sb, a))
	question := must(sb.Sets()[0].Ask(a.ID, 0, q))
	for name, ask := range map[string]func(m *wire.Ask) ID{
		"a stranger":               func(*wire.Ask) ID { return stranger.ID },
		"a member of another name": func(*wire.Ask) ID { return a.ID },
		"another nonce":            func(m *wire.Ask) ID { m.Nonce[0]++; return b.ID },
		"another proof":            func(m *wire.Ask) ID { m.Proof[0]++; return b.ID },
		"the proof of a sync": func(m *wire.Ask) ID {
			c, hello := helloOf(t, sb, a.ID)
			defer c.End(nil)
			m.Nonce, m.Proof = hello.Nonce, hello.Proof
			return b.ID
		},
		"no such namespace":     func(m *wire.Ask) ID { m.Namespace = dbadapter.NamespaceID{9}; return b.ID },
		"another namespace":     func(m *wire.Ask) ID { m.Namespace = other.Sets()[0].Keys.ID; return b.ID },
		"the control namespace": func(m *wire.Ask) ID { m.Namespace = sa.Control.Keys.ID; return b.ID },
	} {
		m := *question
		from := ask(&m)
		if _, err := a.Asked(from, &m); err != ErrDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Asked(b.ID, &wire.Ask{Version: 9}); err != reconcile.ErrVersion {
		t.Errorf("another version: %v", err)
	}
	succeeds(t, second(a.Asked(b.ID, question)))
	a.Config.Paused = func(id ID) bool { return id == b.ID }
	wantErr(t, b.ask(sb, a), reconcile.ErrPaused, "paused")
	wantErr(t, a.ask(sa, b), reconcile.ErrPaused, "paused here")
	unproved := *question
	unproved.Proof[0]++
	if _, err := a.Asked(b.ID, &unproved); err != ErrDenied {
		t.Errorf("paused, and without a proof: %v", err)
	}
	a.Config.Paused = nil
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	wantErr(t, b.ask(sb, a), ErrDenied, "removed")
	wantErr(t, second(sa.Sets()[0].Ask(b.ID, 0, q)), ErrDenied, "a question to a removed member")
}

// What was asked and answered under one right is answered under another no more: a member
// that is removed, and one that is paused, while its question waits hear so.
func TestQuestionThatWaitsLosesItsRight(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	asked := must(a.Asked(b.ID, must(sb.Sets()[0].Ask(a.ID, time.Minute, &wire.AskSet{Sum: dbadapter.Sum{Records: 9}}))))
	if asked.Patience() != wire.MaxPatience*time.Millisecond {
		t.Errorf("it waits for %v", asked.Patience())
	}
	succeeds(t, asked.Allowed())
	succeeds(t, sa.SetPaused(true))
	wantErr(t, asked.Allowed(), reconcile.ErrPaused, "paused")
	succeeds(t, errors.Join(sa.SetPaused(false), sa.Remove(t.Context(), b.ID, false)))
	if err := asked.Allowed(); err != ErrDenied {
		t.Errorf("removed: %v", err)
	}
}

// An answer passes only for the question that it was made for, and for its subject.
func TestAnswersAreBound(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	c := newMachine(3)
	sc := must(c.join(a, invite(sa, RoleRead)))
	question := must(sb.Sets()[0].Ask(a.ID, 0, &wire.AskSet{}))
	reply := must(a.Asked(b.ID, question)).Reply(&wire.SetAnswer{}, 0)
	succeeds(t, second(sb.Sets()[0].Answered(a.ID, question, reply)))
	if _, err := sb.Sets()[0].Answered(a.ID, must(sb.Sets()[0].Ask(a.ID, 0, &wire.AskSet{})), reply); err != ErrDenied {
		t.Errorf("to another question: %v", err)
	}
	if _, err := sb.Sets()[0].Answered(c.ID, question, reply); err != ErrDenied {
		t.Errorf("of another peer: %v", err)
	}
	if _, err := sc.Sets()[0].Answered(a.ID, question, reply); err != ErrDenied {
		t.Errorf("to another asker: %v", err)
	}
	other := *question
	other.Question = &wire.AskKey{Held: dbadapter.Record{Key: []byte("k")}}
	wantErr(t, second(sb.Sets()[0].Answered(a.ID, &other, reply)), reconcile.ErrProtocol, "about something else")
	wantErr(t, second(sb.Sets()[0].Answered(a.ID, question, question)), reconcile.ErrProtocol, "the question itself")
	wantErr(t, second(sb.Sets()[0].Answered(a.ID, question, &wire.Refuse{Code: wire.CodeBusy})), reconcile.ErrBusy, "a refusal")
}

// All questions of a peer, whatever they are about, have one budget, of answers and of the
// bytes of answers: of 10,000 in a second, on 16 streams, it is answered, and the rest are busy.
func TestQuestionsHaveOneBudget(t *testing.T) {
	a, b, _, sb := newPair(RoleRead)
	ask := func(q wire.Question) *wire.Ask { return must(sb.Sets()[0].Ask(a.ID, 0, q)) }
	routed := func(q wire.Question) *wire.Ask { return must(sb.Ask(a.ID, q)) }
	about := []*wire.Ask{
		ask(&wire.AskKey{Held: dbadapter.Record{Key: []byte("k")}}), ask(&wire.AskSet{}), ask(&wire.AskStatus{}),
		routed(&wire.AskRecord{Key: []byte("k")}), routed(&wire.AskHold{}), routed(&wire.AskScan{}), routed(&wire.AskChanges{}), routed(&wire.AskFeed{}),
	}
	for _, size := range []int{0, 512 << 10} {
		a.clock = a.clock.Add(time.Hour)
		begun, answered, busy := a.clock, map[wire.Subject]int{}, 0
		var streams [16]func() // of which each waits for its answer until it asks again
		for i := range 10_000 {
			a.clock = begun.Add(time.Duration(i) * time.Second / 10_000)
			if over := streams[i%16]; over != nil {
				over()
			}
			m := about[i%len(about)]
			subject := m.Question.Subject()
			var err error
			if streams[i%16] = nil; subject.Routed() {
				var q *Asked
				if q, err = a.Routed(b.ID, m); err == nil {
					streams[i%16] = q.Done
					a.Questions.Charge(b.ID, size)
				}
			} else {
				var q *Asked
				if q, err = a.Asked(b.ID, m); err == nil {
					streams[i%16] = q.Done
				}
			}
			switch {
			case err == nil:
				answered[subject]++
			case errors.Is(err, reconcile.ErrBusy):
				busy++
			default:
				t.Fatal(subject, err)
			}
		}
		total, costs := 0, 0
		for subject, n := range answered {
			if total, costs = total+n, costs+n; subject.Routed() {
				costs += n * size / syncing.AnswerBytes
			}
		}
		// The last answer may overdraw it, which the next questions wait for.
		if budget := syncing.QuestionBurst + syncing.QuestionRate; costs < budget-1 || costs > budget+2*size/syncing.AnswerBytes || total+busy != 10_000 || len(answered) != len(about) {
			t.Errorf("of answers of %d bytes %d, which cost %d, and %d are busy: %v", size, total, costs, busy, answered)
		}
		for _, over := range streams {
			if over != nil {
				over()
			}
		}
	}
}

// A commit wakes the questions that it may settle, and no others.
func TestCommitWakesWhatItMaySettle(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	woken := map[string]int{}
	waits := func(name string, q wire.Question) (stop func()) {
		asked := must(a.Asked(b.ID, must(sb.Sets()[0].Ask(a.ID, time.Minute, q))))
		t.Cleanup(asked.Done)
		return asked.Wait(func() { woken[name]++ })
	}
	waits("key", &wire.AskKey{Held: dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: 1}}})
	stop := waits("stopped", &wire.AskKey{Held: dbadapter.Record{Key: []byte("k")}})
	stop()
	waits("another sum", &wire.AskSet{Sum: dbadapter.Sum{Records: 7}})
	must(put(sb, "from b", "v"))
	waits("the sum of b", &wire.AskSet{Sum: sb.Sets()[0].Sum()})
	if sa.Sets()[0].Waiting() != 3 {
		t.Errorf("%d questions wait", sa.Sets()[0].Waiting())
	}
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	if len(woken) != 1 || woken["the sum of b"] != 1 {
		t.Errorf("woken by a sync: %v", woken)
	}
	clear(woken)
	must(put(sa, "other", "v"))
	if len(woken) != 0 {
		t.Errorf("woken by another key: %v", woken)
	}
	must(put(sa, "k", "v"))
	if len(woken) != 1 || woken["key"] != 1 {
		t.Errorf("woken by its key: %v", woken)
	}
}

// A version of a clock that was ages ahead rests for as long as can be told, and no longer.
func TestRestOfADistantVersion(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	now := a.clock
	a.clock = now.AddDate(320, 0, 0)
	must(put(sa, "k", "1"))
	a.clock = now
	if _, _, err := a.sync(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record of the future was taken: %v", err)
	}
	held := must(dbadapter.Hash(sa.Sets()[0].Keys.Hasher, must(get(sa, "k"))))
	reason, rest := sa.Sets()[0].RestsWith(b.ID, sb.Members().Digest(), &held.Record, held.Digest)
	if reason != wire.ReasonClock || rest != wire.MaxRest*time.Millisecond {
		t.Errorf("%v, %s", reason, rest)
	}
}

// The same of two nodes with their namespaces: whichever calls, one sync takes
// place. A dry run does not wait, and no other sync waits for it.
func TestCallersYield(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	hello := someHello(sa)
	dry := *hello
	dry.DryRun = true
	answers := func() (atA, atB error) {
		for _, h := range []*wire.Hello{hello, &dry} {
			for _, side := range []struct {
				of  *machine
				by  ID
				err *error
			}{{a, b.ID, &atA}, {b, a.ID, &atB}} {
				_, done, err := side.of.Answer(side.by, h)
				if err == nil {
					done()
				}
				if h.DryRun && err != nil {
					t.Errorf("a dry run: %v", err)
				}
				if !h.DryRun {
					*side.err = err
				}
			}
		}
		return atA, atB
	}
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("neither calls: %v, %v", atA, atB)
	}
	quietly := sa.Sets()[0].Call(b.ID, syncing.Ask{DryRun: true})
	quietly2 := sb.Sets()[0].Call(a.ID, syncing.Ask{DryRun: true})
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both call for a dry run: %v, %v", atA, atB)
	}
	quietly()
	quietly2()
	doneA, doneB := sa.Sets()[0].Call(b.ID, syncing.Ask{}), sb.Sets()[0].Call(a.ID, syncing.Ask{})
	atA, atB := answers()
	if (atA == nil) == (atB == nil) || !errors.Is(errors.Join(atA, atB), reconcile.ErrBusy) || (atA != nil) != (a.ID < b.ID) {
		t.Errorf("both call: %v, %v", atA, atB)
	}
	doneA()
	doneB()
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both are done: %v, %v", atA, atB)
	}
}

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
