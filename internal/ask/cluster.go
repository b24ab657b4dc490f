package ask

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// About begins questions about a set, and reads what comes back: a node.Set, or a node.View of one that is not here.
type About interface {
	Ask(remote node.ID, patience time.Duration, q wire.Question) (*wire.Ask, error)
	Answered(remote node.ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error)
}

// Answered is what a member has answered.
type Answered struct {
	*wire.Reply
	// Left and Came are when the question left this node, and when the answer arrived, by this node's clock.
	Left, Came time.Time
	// Took is how long it took in all, with a dial.
	Took time.Duration
}

// Inquiry is how several members are asked one question.
type Inquiry struct {
	// Near reports whether there is a connection to a member.
	Near func(id node.ID) bool
	// Ask asks a member. The error says what cut the question, where the context has ended.
	Ask func(ctx context.Context, about About, id node.ID, q wire.Question) (Answered, error)
	// Kinds reads what a member says of its troubles.
	Kinds func(bits byte) []status.TroubleKind
}

// Cluster asks members how they are, about a set that all of them hold. It takes what this node says of itself.
func (q *Inquiry) Cluster(ctx context.Context, set *node.Set, members []status.ClusterMember) {
	q.Each(members, func(i int) {
		m := &members[i]
		if m.Self {
			q.tell(m, set.Status())
		} else if err := q.status(ctx, set, m); err != nil {
			m.Problem = fmt.Errorf("ask %s how it is: %w", m.ID, err)
		}
	})
}

// status asks a member how it is.
func (q *Inquiry) status(ctx context.Context, set *node.Set, m *status.ClusterMember) error {
	before := set.Status()
	a, theirs, err := q.Status(ctx, set, node.ID(m.ID))
	if err != nil {
		return err
	}
	now := set.Status()
	q.tell(m, theirs)
	Met(m, set.Namespace().Members().Digest(), &a)
	// What was written here meanwhile may be there already, or not yet.
	m.Equal = theirs.Sum == before.Sum || theirs.Sum == now.Sum
	if !m.Equal {
		m.Missing = int64(now.Sum.Records) - m.Records
	}
	if !m.Equal && !m.Newest.IsZero() {
		m.Behind = max(0, now.Newest.Time().Sub(m.Newest))
	}
	return nil
}

// Status asks a member how it is, about one set.
func (q *Inquiry) Status(ctx context.Context, about About, id node.ID) (Answered, *wire.StatusAnswer, error) {
	a, err := q.Ask(ctx, about, id, &wire.AskStatus{})
	if err != nil {
		return a, nil, err
	}
	theirs, ok := a.Answer.(*wire.StatusAnswer)
	if !ok {
		return a, nil, fmt.Errorf("%w: it answers something else", reconcile.ErrUnreachable)
	}
	return a, theirs, nil
}

// Met takes what a member's greeting says; lists is what it says where it has this node's list.
func Met(m *status.ClusterMember, lists [16]byte, a *Answered) {
	m.Took = a.Took
	m.SameList = a.Greeting.List == lists
	// It read its clock between the two readings of this node's.
	half := a.Came.Sub(a.Left).Abs() / 2
	m.Offset, m.OffsetError = a.Left.Add(half).Sub(unixMilli(a.Greeting.Time)), half+time.Millisecond
}

// tell takes what a member says of what it holds, and of itself. That may be anything: numbers
// are bounded.
func (q *Inquiry) tell(m *status.ClusterMember, a *wire.StatusAnswer) {
	m.Records, m.Digest, m.Newest = Bounded(a.Sum.Records), a.Sum.Digest, Newest(a)
	q.Describe(m, a)
}

// Newest is the time of the newest version that a member tells of; zero before the first.
func Newest(a *wire.StatusAnswer) (at time.Time) {
	if a.Newest != 0 {
		at = unixMilli(uint64(max(0, a.Newest.Time().UnixMilli())))
	}
	return at
}

// Describe takes what a member says of itself.
func (q *Inquiry) Describe(m *status.ClusterMember, a *wire.StatusAnswer) {
	m.Damaged, m.Program, m.Troubles = a.Damaged, a.Program, q.Kinds(a.Unable)
	if a.Disk != nil {
		m.Taken, m.Free = Bounded(a.Disk.Taken), Bounded(a.Disk.Free)
	}
	if a.Proved != nil {
		m.Proof = &status.Proof{With: status.ID(a.Proved.With), At: unixMilli(a.Proved.At), Differences: Bounded(a.Proved.Differences)}
	}
}

// Bounded is a number of a peer's as one that can be added up.
func Bounded(n uint64) int64 { return int64(min(n, 1<<62)) }

// unixMilli is the time of a peer's word; one after the year 9999, which JSON cannot
// write, is that year's.
func unixMilli(ms uint64) time.Time {
	const most = 253_402_300_799_000
	return time.UnixMilli(int64(min(ms, most))).UTC()
}

// atOnce is how many members are asked at once: what a question takes is mostly waiting, and
// each may want a dial.
const atOnce = 32

// Each calls do for each member, those first that are near. See each.
func (q *Inquiry) Each(members []status.ClusterMember, do func(int)) {
	each(len(members), func(i int) bool { return members[i].Self || q.Near(node.ID(members[i].ID)) }, do)
}

// each calls do for each of so many, some at a time and those first that are near. What has to be
// dialled, and may not answer, does not hold up what answers at once.
func each(count int, near func(int) bool, do func(int)) {
	var all, far []int
	for i := range count {
		if near(i) {
			all = append(all, i)
		} else {
			far = append(far, i)
		}
	}
	var running errgroup.Group
	running.SetLimit(atOnce)
	for _, i := range append(all, far...) {
		running.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = running.Wait() // none fails
}
