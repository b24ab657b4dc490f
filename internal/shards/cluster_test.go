package shards

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// fate is what becomes of the questions to a host.
type fate int

const (
	up   fate = iota
	down      // it cannot be reached
	hung      // it is reached, and does nothing
	deaf      // it does what it is asked, and its answers are lost
)

// cluster is nodes in memory of one namespace of two shards, on the clock of a bubble of
// package synctest. Each shard has three hosts.
type cluster struct {
	t       *testing.T
	ctx     context.Context // ends with the test
	rule    *placement.Rule
	running sync.WaitGroup
	hosts   []*host
	secret  dbadapter.Secret
}

// host is one node, and the network as it sees it.
type host struct {
	*node.Node
	c      *cluster
	ns     *node.Namespace
	shards *Shards
	key    ed25519.PrivateKey
	store  *memdb.Store
	state  *node.State   // that it saved last
	slow   time.Duration // of the clock
	stops  time.Duration // for how long the process stops whenever a loop has waited for a note
	loses  bool          // the next state that it saves has a loss

	mu    sync.Mutex // guards what follows
	fate  fate
	asked int    // questions that came to it
	large int    // records of 64 KiB or more that came in them
	syncs int    // of the lists, which it began
	bytes uint64 // of syncs that it began
	// answers gives what the node answers falsely; nil: it answers rightly.
	answers func(q wire.Question) wire.Answering
	random  *rand.Rand
}

// byPrefix places keys by their first letter, and byWriter has bodies: each value that is not empty.
var (
	byPrefix = &placement.Rule{Kind: placement.Prefix, Shards: 2, Replicas: 3, Prefixes: []placement.PrefixShard{{Prefix: []byte("a")}, {Prefix: []byte("b"), Shard: 1}}, Locator: true}
	byWriter = &placement.Rule{Kind: placement.Writer, Shards: 2, Replicas: 3, Locator: true}
)

// inCluster runs a test over so many nodes, whose shards are at rest.
func inCluster(t *testing.T, nodes int, f func(t *testing.T, c *cluster)) {
	t.Helper()
	inClusterOf(t, byPrefix, nodes, f)
}

func inClusterOf(t *testing.T, rule *placement.Rule, nodes int, f func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))) // by the bubble's clock
		ctx, cancel := context.WithCancel(context.Background())
		c := &cluster{t: t, ctx: ctx, rule: rule}
		defer func() {
			cancel()
			c.running.Wait()
			for _, h := range c.hosts {
				c.must(h.ns.Close())
				c.must(h.store.Close())
			}
		}()
		for range nodes {
			c.join()
		}
		c.rest(min(nodes, 3))
		f(t, c)
	})
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// join adds a node. The first one makes the namespace.
func (c *cluster) join() {
	c.t.Helper()
	at := len(c.hosts)
	key := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), byte(at+1)))
	h := &host{c: c, key: key, store: memdb.New(memdb.Options{}), random: rand.New(rand.NewPCG(uint64(at), 7)), answers: func(wire.Question) wire.Answering { return nil }}
	began := time.Now()
	h.Node = node.New(node.Config{
		ID:      node.IDOf(key.Public().(ed25519.PublicKey)),
		Sign:    func(message []byte) ([]byte, error) { return ed25519.Sign(key, message), nil },
		Now:     func() time.Time { return time.Now().Add(-h.slow) },
		Elapsed: func() time.Duration { return time.Since(began) },
		Random: func(node.Purpose) uint64 {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.random.Uint64()
		},
		Places:   syncing.Places{Sessions: 4, PerPeer: 2, Greetings: 8},
		Interval: time.Second,
	})
	var secret dbadapter.Secret
	var state *node.State
	var err error
	if at == 0 {
		secret = h.NewSecret()
		state, err = h.FoundShards(secret, "notes", node.Policy{}, c.rule)
		c.must(err)
	} else {
		first := c.hosts[0]
		ticket, err := first.ns.Invite(membership.InviteOptions{Role: node.RoleWrite}, [][]byte{{1}})
		c.must(err)
		read, err := membership.ParseTicket(ticket)
		c.must(err)
		request, err := membership.RequestJoin(h.ID, read, nil)
		c.must(err)
		reply, _, _ := first.AnswerJoin(c.ctx, h.ID, request, func(node.ID) [][]byte { return nil })
		joined, err := h.ReadJoin(read, reply)
		c.must(err)
		secret, state = joined.Secret, joined.State
	}
	c.secret = secret
	h.open(state)
	c.hosts = append(c.hosts, h)
	h.tend()
}

// open opens the namespace with a state.
func (h *host) open(state *node.State) {
	h.c.t.Helper()
	ns, err := h.Open(h.c.ctx, node.Opening{
		Secret: h.c.secret, State: state,
		Drop:  h.store.Drop,
		Store: h.store.Namespace,
		Save: func(s *node.State) error {
			if h.state = s; h.loses {
				s.Lose([]int64{-1}, time.Now())
			}
			return nil
		}, KeepList: func([][]byte) {},
	})
	h.c.must(err)
	h.ns, h.shards = ns, &Shards{NS: ns, Net: h, Random: func(n int64) int64 { return n / 2 }}
}

// lacks opens the namespace anew as one that may lack what it held of a shard.
func (h *host) lacks(shard placement.Shard) {
	h.c.t.Helper()
	h.c.must(h.ns.Close())
	h.Forget(h.ns)
	for i := range h.state.Shards {
		if v := &h.state.Shards[i].Watermark; h.state.Shards[i].Shard == shard {
			v.Recovering, v.Lost = true, true
		}
	}
	h.open(h.state)
}

// tend does what is due at a node, and opens and leaves shards.
func (h *host) tend() {
	t := h.c.t
	t.Helper()
	_, err := h.ns.Tend(h.c.ctx)
	h.c.must(err)
	hold, leave := h.ns.Moves()
	for _, shard := range hold {
		_, err := h.ns.TakeShard(h.c.ctx, shard)
		h.c.must(err)
	}
	for _, set := range leave {
		if h.ns.Leave(set) == nil {
			h.c.must(h.ns.Discard(h.c.ctx, set))
		}
	}
}

// round lets each node sync with each other one that can be reached.
func (c *cluster) round() {
	time.Sleep(2 * time.Second)
	for _, a := range c.hosts {
		for _, b := range c.hosts {
			if a == b || a.fate != up || b.fate != up || a.ns.MayCall(b.ID) != nil {
				continue
			}
			_ = a.syncWith(b, nil) // a table may be heard before its statement
			for _, set := range a.ns.Sets() {
				if set.With(b.ID) {
					_ = a.syncWith(b, set) // which may not hold the shard yet
				}
			}
		}
		a.tend()
	}
}

func (c *cluster) rounds(n int) {
	for range n {
		c.round()
	}
}

// rest lets rounds pass until the shards are at rest, with so many whole hosts each.
func (c *cluster) rest(hosts int) {
	c.t.Helper()
	for range 60 {
		if c.atRest(hosts) {
			return
		}
		c.round()
	}
	c.t.Fatal("the shards do not come to rest")
}

func (c *cluster) atRest(hosts int) bool {
	for shard := range placement.Shard(c.rule.Shards) {
		whole := 0
		for _, h := range c.hosts {
			row := h.ns.Row(shard)
			if row == nil || !row.AtRest() || len(row.Old) != hosts || row.Name() != c.hosts[0].ns.Row(shard).Name() || h.ns.Gone() != c.hosts[0].ns.Gone() {
				return false
			}
			if h.ns.WholeHere(shard) != nil {
				whole++
			}
		}
		if whole != hosts {
			return false
		}
	}
	return true
}

// syncWith syncs a set, or the list of members and the table.
func (h *host) syncWith(other *host, set *node.Set) error {
	part := &h.ns.Control
	if set != nil {
		part = &set.Part
	}
	_, err := part.Plan(other.ID, syncing.Ask{}).Run(h.c.ctx, call{h, other, part}, nil)
	return err
}

// call holds the conversations of a sync one after the other, each once.
type call struct {
	*host
	other *host
	part  *node.Part
}

func (c call) Sleep(context.Context, time.Duration) error { return errors.New("it is not tried again") }

func (c call) Go(ctx context.Context, f func(ctx context.Context)) { f(ctx) }

func (c call) Wait(context.Context) {}

func (c call) Elapsed() time.Duration { return c.Now() }

func (c call) Converse(ctx context.Context, ask syncing.Ask, _ func(reconcile.Report)) (report reconcile.Report, err error) {
	defer c.part.Call(c.other.ID, ask)()
	a, err := c.part.Initiate(ctx, c.other.ID, ask, nil)
	if err != nil {
		return report, err
	}
	hello, size := carried(nil, a.Session.Next().Frame)
	there, done, err := c.other.Answer(c.ID, hello.(*wire.Hello))
	if err != nil {
		a.Session.Next()
		a.Session.Deliver(reconcile.Refusal(err), 0)
		a.Session.Next()
		return a.End(a.Session.Err())
	}
	defer done()
	b := there.Respond(ctx, c.ID, hello.(*wire.Hello), size, nil)
	converse(b.Session, a.Session)
	_, _ = b.End(b.Session.Err())
	report, err = a.End(a.Session.Err())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += uint64(report.WireBytesSent + report.WireBytesReceived)
	return report, err
}

// converse carries the frames of two sessions, of which the first is about to send.
func converse(sides ...*reconcile.Session) {
	var inbox [2]bytes.Buffer
	var waits, over [2]bool
	for i := 0; !over[0] || !over[1]; i = 1 - i {
		for s := sides[i]; !over[i] && (!waits[i] || inbox[i].Len() > 0 || over[1-i]); {
			if waits[i] {
				if m, size, err := wire.Read(&inbox[i]); err != nil {
					s.Fail(errors.Join(reconcile.ErrUnreachable, err))
				} else {
					s.Deliver(m, size)
				}
			}
			e := s.Next()
			waits[i], over[i] = e.Want == reconcile.WantReceive, e.Want == reconcile.WantNothing
			inbox[1-i].Write(e.Frame)
		}
	}
}

// carried is a message as the other side reads it.
func carried(m wire.Message, frame []byte) (wire.Message, int) {
	if m != nil {
		frame = wire.Append(nil, m)
	}
	read, size, err := wire.Read(bytes.NewReader(frame))
	if err != nil {
		panic(err)
	}
	return read, size
}

// The network. An answer of the first node takes two milliseconds, of the second one four, and so on.

func (h *host) Now() time.Duration { return h.Elapsed() }

func (h *host) Connected(node.ID) bool { return true }

func (h *host) Ask(ctx context.Context, to node.ID, q wire.Question) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	if ask, err = h.ns.Ask(to, q); err != nil {
		return nil, nil, false, err
	}
	at := slices.IndexFunc(h.c.hosts, func(o *host) bool { return o.ID == to })
	other, latency := h.c.hosts[at], time.Duration(at+1)*time.Millisecond
	if h.Sleep(ctx, latency) != nil {
		return nil, nil, false, reconcile.ErrUnreachable
	}
	other.mu.Lock()
	fate, answers := other.fate, other.answers
	if fate != down {
		other.asked++
		if hold, is := q.(*wire.AskHold); is {
			for i := range hold.Records {
				if len(hold.Records[i].Value) >= 64<<10 {
					other.large++
				}
			}
		}
	}
	other.mu.Unlock()
	switch fate {
	case down:
		return nil, nil, false, reconcile.ErrUnreachable
	case hung:
		<-ctx.Done()
		return nil, nil, true, reconcile.ErrUnreachable
	}
	read, _ := carried(ask, nil)
	var reply *wire.Reply
	routed, err := other.Routed(h.ID, read.(*wire.Ask))
	if err == nil {
		defer routed.Done()
		if lie := answers(read.(*wire.Ask).Question); lie != nil {
			reply = &wire.Reply{Subject: read.(*wire.Ask).Question.Subject(), Answer: lie}
			reconcile.ProveReply(reconcile.Keys{Secret: h.c.secret, ID: h.ns.ID()}, []byte(to), []byte(h.ID), read.(*wire.Ask), reply)
		} else {
			reply, err = Reply(h.c.ctx, routed)
		}
	}
	if fate == deaf || h.Sleep(ctx, latency) != nil {
		return nil, nil, true, reconcile.ErrUnreachable
	}
	if err != nil {
		m, _ = carried(reconcile.Refusal(err), nil)
	} else {
		m, _ = carried(reply, nil)
	}
	if refusal, ok := m.(*wire.Refuse); ok {
		return nil, nil, false, reconcile.Refused(refusal)
	}
	return ask, m, true, nil
}

func (h *host) SyncLists(ctx context.Context, with node.ID) error {
	at := slices.IndexFunc(h.c.hosts, func(o *host) bool { return o.ID == with })
	if h.Sleep(ctx, time.Millisecond) != nil || h.c.hosts[at].fate != up {
		return reconcile.ErrUnreachable
	}
	h.mu.Lock()
	h.syncs++
	h.mu.Unlock()
	return h.syncWith(h.c.hosts[at], nil)
}

func (h *host) Go(ctx context.Context, f func(ctx context.Context)) bool {
	h.c.running.Go(func() { f(ctx) })
	return true
}

func (h *host) Outlive(f func(ctx context.Context)) { h.Go(h.c.ctx, f) }

func (h *host) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *host) Changed(ctx context.Context, set *node.Set, behind uint64, d time.Duration) error {
	if _, _, end := set.Live.State(); end > behind {
		return nil
	}
	return h.Sleep(ctx, d)
}

func (h *host) Mailbox() Mailbox { return &box{h: h, notes: make(chan func(), 1000)} }

type box struct {
	h     *host
	notes chan func()
	past  int // waits in a row that were over before they began
}

func (b *box) Put(note func()) { b.notes <- note }

func (b *box) Take(ctx context.Context, until time.Duration) func() {
	select {
	case note := <-b.notes:
		return note
	default:
	}
	if b.past++; until > b.h.Now() {
		b.past = 0
	} else if b.past > 100 {
		panic("a loop waits for what is past, and never ends by the bubble's clock")
	}
	select {
	case note := <-b.notes:
		time.Sleep(b.h.stops)
		return note
	case <-time.After(until - b.h.Now()):
	case <-ctx.Done():
	}
	return nil
}

// set changes what becomes of questions to hosts.
func (c *cluster) set(to fate, hosts ...int) {
	for _, i := range hosts {
		c.hosts[i].mu.Lock()
		c.hosts[i].fate = to
		c.hosts[i].mu.Unlock()
	}
}

// quiet waits until nothing goes on any more that was begun.
func (c *cluster) quiet() {
	time.Sleep(3 * Patience)
	synctest.Wait()
}

func draft(key, value string) node.Draft {
	return node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value), Deleted: value == ""}}
}

// put writes a value, or a tombstone where it is empty.
func (h *host) put(key, value string, l quorum.Level) (dbadapter.Version, error) {
	w, err := h.shards.Put(h.c.ctx, []node.Draft{draft(key, value)}, PutOptions{Level: l})
	return append(w.Versions, dbadapter.Version{})[0], err
}

// puts is put of what is acknowledged.
func (h *host) puts(key, value string, l quorum.Level) dbadapter.Version {
	h.c.t.Helper()
	v, err := h.put(key, value, l)
	h.c.must(err)
	return v
}

// putIf is put on a condition.
func (h *host) putIf(key, value string, held dbadapter.Version) (dbadapter.Version, error) {
	d := draft(key, value)
	d.If = &held
	w, err := h.shards.Put(h.c.ctx, []node.Draft{d}, PutOptions{})
	return append(w.Versions, dbadapter.Version{})[0], err
}

func (h *host) get(key string, o GetOptions) (string, Found, error) {
	f, err := h.shards.Get(h.c.ctx, []byte(key), o)
	value := "nothing"
	if f.Record != nil {
		value = string(f.Record.Value)
	}
	return value, f, err
}

// alone writes a record at one host, which tells no other one.
func (h *host) alone(key, value string) dbadapter.Version {
	h.c.t.Helper()
	set := h.ns.WholeHere(h.ns.Home([]byte(key)))
	attempt, err := set.Write(draft(key, value))
	h.c.must(err)
	for again := true; again; {
		writes, err := attempt.Writes()
		h.c.must(err)
		again, err = attempt.Judge(set.Store.Apply(h.c.ctx, writes))
		h.c.must(err)
	}
	return attempt.Version(0)
}

// held is what each host holds under a key, in order.
func (c *cluster) held(key string) (all []string) {
	c.t.Helper()
	for _, h := range c.hosts {
		value := "-"
		for _, set := range h.ns.Sets() {
			if set.Shard() != h.ns.Home([]byte(key)) {
				continue
			}
			r, err := set.Held([]byte(key))
			c.must(err)
			if r != nil {
				value = fmt.Sprint(string(r.Value), map[bool]string{true: "deleted"}[r.Deleted])
			}
		}
		all = append(all, value)
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
