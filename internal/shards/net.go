package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Net is what the loops need of the program that runs the node.
type Net interface {
	// Now is the time since any moment, by a clock that goes on while the machine sleeps.
	Now() time.Duration
	// Connected reports whether a question need not wait for a dial.
	Connected(id node.ID) bool
	// Ask sends a question to a member and waits for its answer, which may be a refusal. sent: the
	// question may have reached the member.
	Ask(ctx context.Context, to node.ID, q wire.Question) (ask *wire.Ask, m wire.Message, sent bool, err error)
	// SyncLists makes the list of members, and the table, equal with a member's. All that want it
	// of one member at one moment share a sync. (3)
	SyncLists(ctx context.Context, with node.ID) error
	// Go runs f beside its caller, with a context that ends with ctx and with the node. false: the
	// node closes, and f does not run.
	Go(ctx context.Context, f func(ctx context.Context)) bool
	// Outlive runs f beside its caller, with a context that ends with the node: for what hosts are
	// still to hold once the caller has its answer.
	Outlive(f func(ctx context.Context))
	// Sleep waits; it returns early with an error when the context ends.
	Sleep(ctx context.Context, d time.Duration) error
	// Changed waits until a set of this node has changed behind a change, or for so long.
	Changed(ctx context.Context, set *node.Set, behind uint64, d time.Duration) error
	// Mailbox makes one.
	Mailbox() Mailbox
}

// Mailbox hands results of what runs beside a loop to the loop.
type Mailbox interface {
	// Put never waits.
	Put(note func())
	// Take is the next note, or nil once the time is over or the context has ended.
	Take(ctx context.Context, until time.Duration) (note func())
}

// Times of a request.
const (
	// Patience is how long a request goes on, where its context does not end before. A command that
	// runs longer makes its records anew: a host that lost records counts no sync before that. (11)
	Patience = 10 * time.Second
	// pauseFirst is the pause before a host that is busy or cannot be reached is asked again; it
	// doubles up to pauseMost.
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 1600 * time.Millisecond
	// maxListSyncs is how often lists are synced with a host for one request. Then it counts as one
	// that does not answer. (3)
	maxListSyncs = 2
)

// The errors of a request.
var (
	// ErrTooFew: fewer hosts have answered than the level takes. What was found is given beside it.
	ErrTooFew = fmt.Errorf("%w: too few hosts of the key's shard have answered", reconcile.ErrUnreachable)
	// ErrUnconfirmed: a host holds the record, or may, and fewer have confirmed than the level takes.
	ErrUnconfirmed = ask.ErrUnconfirmed
	// errRow: this node goes by another row now; the request begins again. (3)
	errRow = errors.New("the shard's row has changed")
	// errApart: a host still goes by another row after its list was synced.
	errApart    = errors.New("it goes by another row of the layout, or knows of other removals")
	errGone     = fmt.Errorf("%w: it is no member any more", node.ErrDenied)
	errNotWhole = errors.New("it has not taken over the shard yet")
	errSilent   = errors.New("it has not answered")
)

// Shards are the shards of one namespace, as this node reads and writes them.
type Shards struct {
	NS  *node.Namespace
	Net Net
	// Random is a number below n, for pauses.
	Random func(n int64) int64
	// Paging waits for a place among the pages of scans that are on their way; nil: there are always some.
	Paging func(ctx context.Context) (leave func(), err error)
	// Locator says where keys are, where the namespace has one; nil: it has none. Only a read at level one
	// rests on it.
	Locator *locator.Follower

	// rounds are those of CollectBodies, which one caller at a time runs.
	// A body is a hash of its key and of the row.
	rounds bodies.Rounds[[16]byte, struct{}]

	mu    sync.Mutex
	times quorum.Times
}

// begin is when a request is over, and the context for it, which ends only where the caller gives up:
// a request whose time is over still says what it has found.
func (s *Shards) begin(ctx context.Context) (request context.Context, cut context.CancelFunc, over time.Duration) {
	over = Patience
	at, bounded := ctx.Deadline()
	if !bounded {
		request, cut = context.WithCancel(ctx)
		return request, cut, s.Net.Now() + over
	}
	request, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel(context.Cause(ctx))
		}
	})
	return request, func() { stop(); cancel(nil) }, s.Net.Now() + min(over, time.Until(at))
}

// nearest orders hosts: this node first, then the others by how soon they answer.
func (s *Shards) nearest(hosts []node.ID) []node.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts = slices.Clone(hosts)
	s.times.Sort(hosts, s.Net.Connected, s.Net.Now())
	if i := slices.Index(hosts, s.NS.Self()); i > 0 {
		hosts = slices.Insert(slices.Delete(hosts, i, i+1), 0, s.NS.Self())
	}
	return hosts
}

// took notes how a request to a host has ended. cut: its answer was awaited no longer.
func (s *Shards) took(id node.ID, began time.Duration, cut bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Net.Now()
	switch {
	case err == nil:
		s.times.Took(id, now-began, now)
	case cut:
		s.times.Cut(id, now-began, now)
	case errors.Is(err, reconcile.ErrUnreachable):
		s.times.Failed(id, now)
	}
}

// askHost asks a host until it has answered under the asker's row, or the time is over. It waits where the host is
// busy, and syncs the lists where the two go by different rows. This node answers for itself at once.
func askHost[T any](ctx context.Context, s *Shards, a *Asker, id node.ID, over time.Duration, q question[T]) (t T, sent bool, err error) {
	if id == s.NS.Self() {
		said, floor, err := answer(ctx, s.NS, id, q.Question)
		_, apart := said.(*wire.Apart)
		switch {
		case err != nil:
			return t, true, err
		case !apart:
			t, err = q.read(id, &wire.Reply{Subject: q.Question.Subject(), Answer: said, Greeting: wire.Greeting{Floor: floor}})
			return t, true, err
		case a.Current():
			return t, true, errApart
		}
		return t, true, errRow
	}
	pause, syncs := pauseFirst, 0
	for {
		if !s.NS.Admits(id) { // it stays in its set, as one that does not answer (14)
			return t, sent, errGone
		}
		began := s.Net.Now()
		asked, m, was, err := s.Net.Ask(ctx, id, q.Question)
		sent = sent || was
		apart := false
		if err == nil {
			var reply *wire.Reply
			if reply, err = s.NS.Answered(id, asked, m); err == nil {
				if _, apart = reply.Answer.(*wire.Apart); !apart {
					t, err = q.read(id, reply)
				}
			}
		}
		s.took(id, began, ctx.Err() != nil, err)
		switch {
		case !a.Current():
			return t, sent, errRow
		case apart, errors.Is(err, node.ErrDenied): // it may not know yet that this node is a member
			if syncs++; syncs > maxListSyncs {
				return t, sent, errApart
			}
			// One side may decline a table that does not count there; the lists are equal all the same.
			if failed := s.Net.SyncLists(ctx, id); failed != nil && !errors.Is(failed, syncing.ErrRejected) {
				return t, sent, failed
			}
			if !a.Current() {
				return t, sent, errRow
			}
		case errors.Is(err, reconcile.ErrBusy):
			if s.Net.Now()+pause >= over || s.Net.Sleep(ctx, pause) != nil {
				return t, sent, err
			}
			pause = min(2*pause, pauseMost)
		default:
			return t, sent, err
		}
	}
}

// askSoon is askHost for a caller that asks another host, or gives up, when a time is over.
func askSoon[T any](ctx context.Context, s *Shards, a *Asker, id node.ID, until time.Duration, q question[T]) (T, error) {
	return within(ctx, s, until, func(ctx context.Context) (T, error) {
		t, _, err := askHost(ctx, s, a, id, until, q)
		return t, err
	})
}

// forever is a time that does not come.
const forever = time.Duration(1 << 62)

// beside runs f beside its caller, who is to wait for what it gives.
func beside[T any](ctx context.Context, s *Shards, f func(ctx context.Context) (T, error)) (wait func(until time.Duration) (T, error)) {
	box := s.Net.Mailbox()
	var t T
	var err error
	s.Net.Go(ctx, func(ctx context.Context) {
		got, failed := f(ctx)
		box.Put(func() { t, err = got, failed })
	})
	return func(until time.Duration) (T, error) {
		if note := box.Take(ctx, until); note != nil {
			note()
		} else if err = context.Cause(ctx); err == nil {
			err = fmt.Errorf("%w: %w", reconcile.ErrUnreachable, errSilent)
		}
		return t, err
	}
}

// within waits for what f does beside it until the time is over.
func within[T any](ctx context.Context, s *Shards, until time.Duration, f func(ctx context.Context) (T, error)) (T, error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	return beside(ctx, s, f)(until)
}

// each runs f for each number below n, at most so many at a time, until one fails. It ends when all that run have ended.
func each(ctx context.Context, s *Shards, n, most int, f func(ctx context.Context, i int) error) (failed error) {
	box, open := s.Net.Mailbox(), 0
	for next := 0; open > 0 || next < n && failed == nil; {
		if next < n && failed == nil && open < most {
			i := next
			next++
			if ctx.Err() == nil && s.Net.Go(ctx, func(ctx context.Context) {
				err := f(ctx, i)
				box.Put(func() { open, failed = open-1, cmp.Or(failed, err) })
			}) {
				open++
			} else {
				failed = cmp.Or(context.Cause(ctx), context.Canceled)
			}
			continue
		}
		note := box.Take(context.WithoutCancel(ctx), forever)
		if note == nil { // the node ends, and with it what runs
			return cmp.Or(context.Cause(ctx), context.Canceled)
		}
		note()
	}
	return failed
}

// anew runs a request until it ends under one row.
func anew[T any](ctx context.Context, s *Shards, shard placement.Shard, over time.Duration, request func(a *Asker) (T, error)) (T, error) {
	for {
		a, err := NewAsker(s.NS, shard)
		if gone := s.NS.Outside(); gone != nil { // no host answers a former member
			var none T
			return none, gone
		}
		if err != nil {
			var none T
			return none, fmt.Errorf("%w: %v", ErrTooFew, err) // %v: that no layout is known does not say that the key is not found
		}
		t, err := request(a)
		if !errors.Is(err, errRow) {
			return t, err
		}
		if ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		if s.Net.Now() >= over {
			return t, fmt.Errorf("%w: the shard is moving: try again in some seconds", ErrTooFew)
		}
	}
}

// Side is how one set of hosts stands to a request: so many have answered, of so many, and so
// many are needed.
type Side struct{ Had, Hosts, Need int }

// sideOf counts the hosts of a set.
func sideOf(set []node.ID, had func(node.ID) bool) Side {
	s := Side{Hosts: len(set), Need: quorum.Majority(len(set))}
	for _, id := range set {
		if had(id) {
			s.Had++
		}
	}
	return s
}

// all reports whether each host has done something that is neither removed nor lapsed.
func (s *Shards) all(row *quorum.Row, had func(node.ID) bool) bool {
	return !slices.ContainsFunc(row.Hosts(), func(id node.ID) bool { return s.NS.Admits(id) && !s.NS.Members().Lapsed(id) && !had(id) })
}

// count says how many hosts have done something, for a person. A whole host counts as an old one.
func count(row *quorum.Row, did string, old, new Side) string {
	if row.AtRest() {
		return fmt.Sprintf("%d of %d hosts %s; %d are needed", old.Had, old.Hosts, did, old.Need)
	}
	return fmt.Sprintf("the shard moves: %d of %d old hosts and %d of %d new hosts %s; %d and %d are needed", old.Had, old.Hosts, new.Had, new.Hosts, did, old.Need, new.Need)
}

// words say why hosts have not answered, on one line.
func words(why map[node.ID]error) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(why)) {
		all = append(all, fmt.Sprintf("%s: %v", id, why[id]))
	}
	return strings.Join(all, "; ")
}
