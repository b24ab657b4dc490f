package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// stage is a host, the first of a crew, and members that act while time passes.
type stage struct {
	*crew
	acts []func() // each is called every half second
}

// newStage makes a host, and members with the roles.
func newStage(t *testing.T, roles ...Role) *stage {
	s := &stage{crew: &crew{t: t}}
	m := newMachine(1)
	m.Places = syncing.Places{Sessions: 16, PerPeer: 4, Greetings: 64}
	m.Sessions = syncing.NewSessions(m.Places)
	s.machines, s.ns = append(s.machines, m), append(s.ns, m.create("notes", Policy{Unsigned: true}))
	for _, role := range roles {
		s.join(len(s.machines), role)
	}
	s.round()
	s.round()
	return s
}

func (s *stage) pass(d time.Duration) {
	for step := 500 * time.Millisecond; d > 0; d -= step {
		s.crew.pass(min(d, step))
		for _, act := range s.acts {
			act()
		}
	}
}

// fill writes records at a member.
func (s *stage) fill(i int, records, size int) {
	for n := 0; n < records; n += 250 {
		var drafts []Draft
		for at := n; at < min(n+250, records); at++ {
			drafts = append(drafts, draft(fmt.Sprint(i, " ", at), strings.Repeat("v", size)))
		}
		must(commit(s.ns[i].Sets()[0].Write(drafts...)))
	}
}

// hello is that of a member which begins a sync with the host.
func (s *stage) hello(i int, ask syncing.Ask) (*Conversation, *wire.Hello) {
	return s.helloTo(i, 0, ask)
}

func (s *stage) helloTo(i, to int, ask syncing.Ask) (*Conversation, *wire.Hello) {
	c := must(s.ns[i].Sets()[0].Initiate(s.t.Context(), s.machines[to].ID, ask, nil))
	m, _, err := wire.Read(bytes.NewReader(c.Session.Next().Frame))
	return c, must(m, err).(*wire.Hello)
}

// hog has a member announce 50,000 records that it does not hold, and then say something
// every 4.5 s. Where a side ends the sync, the member once lasts have passed, it begins another.
func (s *stage) hog(i int, lasts time.Duration, says func() wire.Message) {
	var c *Conversation
	done, last, begun := func() {}, time.Duration(0), time.Duration(0)
	s.t.Cleanup(func() {
		if c != nil {
			c.End(nil)
		}
	})
	s.acts = append(s.acts, func() {
		now := s.machines[0].elapsed()
		switch {
		case c == nil:
			mine, hello := s.hello(i, syncing.Ask{Method: wire.MethodAll})
			mine.End(nil)
			hello.Records, hello.Digest = 50_000, dbadapter.Digest{3}
			part, over, err := s.machines[0].Answer(s.machines[i].ID, hello)
			if err != nil {
				return
			}
			c, done = part.Respond(s.t.Context(), s.machines[i].ID, hello, 154, nil), over
			for c.Session.Next().Want == reconcile.WantSend { // what the host holds
			}
			c.Session.Deliver(&wire.Answer{}, 34)
			begun = now
		case now-begun >= lasts:
			c.Session.Fail(reconcile.ErrUnreachable)
		case now-last < 4500*time.Millisecond:
			return
		default:
			c.Session.Deliver(says(), 2)
		}
		last = now
		e := c.Session.Next()
		for ; e.Want == reconcile.WantSend; e = c.Session.Next() {
		}
		if e.Want == reconcile.WantNothing {
			c.End(c.Session.Err())
			done()
			c = nil
		}
	})
}

// syncs has a member sync with the host until that has succeeded, as often as its back-off lets it.
// Refusals go to heard.
func (s *stage) syncs(i int, heard func(error)) (over func() bool) {
	retry := s.machines[i].Backoff()
	var next time.Duration
	begun, ended := s.machines[i].elapsed(), false
	s.acts = append(s.acts, func() {
		now := s.machines[i].elapsed()
		if ended || now < next {
			return
		}
		_, _, err := s.machines[i].syncPart(&s.ns[i].Sets()[0].Part, s.machines[0], syncing.Ask{})
		wait, again := retry.Again(now-begun, err)
		if err != nil && !again {
			s.t.Fatalf("member %d gives up: %v", i, err)
		}
		if next, ended = now+wait, err == nil; err != nil {
			heard(err)
		}
	})
	return func() bool { return ended }
}

// gives has a member send at so many bytes a second, in one sync after another, until it has succeeded.
// applied is what the host says of all of them.
func (s *stage) gives(i, rate int, heard func(error)) (applied int) {
	begun := s.machines[i].elapsed()
	retry := s.machines[i].Backoff()
	for {
		mine, hello := s.hello(i, syncing.Ask{})
		part, done, err := s.machines[0].Answer(s.machines[i].ID, hello)
		if err != nil {
			s.t.Fatal(err)
		}
		theirs := part.Respond(s.t.Context(), s.machines[i].ID, hello, 100, nil)
		carryBy(func(side, size int) {
			if side == 1 && theirs.Session.Err() == nil { // else the stream is reset
				s.pass(time.Duration(size) * time.Second / time.Duration(rate))
			}
		}, theirs.Session, mine.Session)
		took, _ := theirs.End(theirs.Session.Err())
		applied += took.Applied
		report, err := mine.End(mine.Session.Err())
		done()
		if err == nil && report.Verified {
			return applied
		}
		if err == nil { // it gave what is behind a key
			continue
		}
		wait, again := retry.Again(s.machines[i].elapsed()-begun, err)
		if !again && !errors.Is(err, reconcile.ErrTurn) {
			s.t.Fatalf("member %d gives up: %v, %+v", i, err, report)
		}
		if heard(err); !again { // until its next sync is due
			retry, begun, wait = s.machines[i].Backoff(), s.machines[i].elapsed(), time.Minute
		}
		s.pass(wait)
	}
}

// Members that announce records and give none keep nobody from giving: each has the turn for
// half a minute, and then comes behind all others. One that gives slowly keeps its turn among
// them. Who waits is told whose turn it is.
func TestHogsHaveTheTurnForHalfAMinute(t *testing.T) {
	for _, role := range []Role{RoleRead, RoleWrite} {
		for _, hogs := range []int{1, 3} { // three streams of one member, or of three
			t.Run(fmt.Sprint(role, hogs), func(t *testing.T) {
				s := newStage(t, append([]Role{RoleWrite, RoleWrite, RoleWrite}, slices.Repeat([]Role{role}, hogs)...)...)
				for stream := range 3 {
					s.hog(4+stream%hogs, time.Hour, func() wire.Message { return &wire.Working{} })
				}
				s.pass(10 * time.Second)
				s.fill(1, 6000, 10)
				s.fill(2, 6000, 10)
				begun, named := s.machines[0].elapsed(), map[string]bool{}
				heard := func(err error) { named[err.Error()] = true }
				one, other := s.syncs(1, heard), s.syncs(2, heard)
				for !one() || !other() {
					s.pass(time.Second)
				}
				if took := s.machines[0].elapsed() - begun; took > 2*time.Minute || len(s.keys(0)) != 12_000 {
					t.Errorf("the host holds %d records of two members after %s", len(s.keys(0)), took)
				}
				if says := "busy with " + s.machines[4].ID.String() + "; try again in "; !strings.Contains(fmt.Sprint(named), says) {
					t.Errorf("they hear %v, and not %q", named, says)
				}
				if role == RoleWrite && hogs == 3 {
					s.fill(3, 30_000, 10)
					s.gives(3, 64<<10, func(err error) { t.Log(err) })
					if held := len(s.keys(0)); held != 42_000 {
						t.Errorf("the host holds %d records after a slow member's sync", held)
					}
				}
			})
		}
	}
}

// What came of a member that gives less than a turn asks for is kept, and its turn comes again:
// among members that give nothing, and end a sync to ask anew, too.
func TestSlowGiversAmongHogs(t *testing.T) {
	for _, lasts := range []time.Duration{31 * time.Second, time.Hour} {
		for _, rate := range []int{64, 32, 16} {
			t.Run(fmt.Sprint(lasts, rate), func(t *testing.T) {
				s := newStage(t, RoleWrite, RoleWrite, RoleWrite, RoleWrite)
				for i := range 3 {
					s.hog(2+i, lasts, func() wire.Message { return &wire.Working{} })
				}
				s.pass(10 * time.Second)
				s.fill(1, 1000, 4096)
				begun := s.machines[0].elapsed()
				applied := s.gives(1, rate<<10, func(err error) {
					if took := s.machines[0].elapsed() - begun; took > 20*time.Minute {
						t.Fatalf("the host holds %d records after %s: %v", len(s.keys(0)), took, err)
					}
				})
				if held := len(s.keys(0)); held != 1000 || applied != 1000 {
					t.Errorf("the host holds %d records, and says that it has taken %d", held, applied)
				}
			})
		}
	}
}

// Empty nodes do not wait for one another: one that calls needs no turn, and one that was
// called keeps its place among those that ask, whether it gave all that it had, little or
// nothing, or refused at once.
func TestWhoHasLittleIsNoHog(t *testing.T) {
	for _, little := range []int{0, 5, -1} {
		s := newStage(t, RoleWrite, RoleWrite)
		sync := func(from, to int) error {
			_, _, err := s.machines[from].syncPart(&s.ns[from].Sets()[0].Part, s.machines[to], syncing.Ask{})
			return err
		}
		s.fill(1, little, 10)
		mine, hello := s.helloTo(0, 1, syncing.Ask{})
		wantErr(t, sync(2, 0), nil, "an empty member that calls an empty host")
		if err := sync(0, 2); !errors.Is(err, reconcile.ErrTurn) {
			t.Fatalf("a call of another member while the first is about to give: %v", err)
		}
		if part, done, err := s.machines[1].Answer(s.machines[0].ID, hello); little < 0 {
			mine.Session.Next()
			mine.Session.Deliver(reconcile.Refusal(reconcile.ErrBusy), 0)
			mine.Session.Next()
			done()
		} else {
			theirs := must(part, err).Respond(t.Context(), s.machines[0].ID, hello, 100, nil)
			carryBy(func(int, int) {}, mine.Session, theirs.Session)
			must(theirs.End(theirs.Session.Err()))
			done()
		}
		if _, err := mine.End(mine.Session.Err()); (err != nil) != (little < 0) {
			t.Error(err)
		}
		if err := s.ns[0].Sets()[0].bulk.Claim(s.machines[1].ID, true, many, s.machines[0].elapsed).Open(false); err != nil {
			t.Errorf("a call of the member that had %d records, while another waits: %v", little, err)
		}
	}
}
