package peer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Bounds of what a node does to follow hosts' feeds.
const (
	// followPatience is how long one question may take.
	followPatience = 10 * time.Second
	// followPause is the least time between a poll that was answered with news and the next one
	// that waits; and newsGather that from a commit to such an answer: a node that reads while many
	// write asks each host at most 40 times a second.
	followPause = 20 * time.Millisecond
	newsGather  = 5 * time.Millisecond
)

// following is what a node follows of the hosts' feeds, where a namespace has a locator: which keys
// their shards have.
type following struct {
	locator *directory.Locator
	now     func() time.Duration // a wakeful clock, but for tests
	// ask asks a host, which may be this node: feedOf, but for tests; nil: it does not tell of the set.
	ask   func(ctx context.Context, id node.ID, m directory.Message) (directory.Message, error)
	turns followTurns

	mu      sync.Mutex      // guards what follows
	tellers *node.Tellers   // of which the locator has heard
	logged  time.Duration   // when the log was last told what is wrong
	faults  map[node.ID]int // that are in the log
	// apart is since when hosts tell otherwise than others; told: it is in the log.
	apart map[node.ID]time.Duration
	told  map[node.ID]bool
}

// copies are the files of a locator, in the namespace's folder; in memory, if the node has none.
type copies struct {
	folder string
	mu     sync.Mutex // guards files
	files  map[string][]byte
}

// Read implements directory.Disk.
func (c *copies) Read(name string) ([]byte, error) {
	if c.folder == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.files[name], nil
	}
	data, err := os.ReadFile(filepath.Join(c.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write implements directory.Disk.
func (c *copies) Write(name string, data []byte) error {
	if c.folder == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.files[name] = data
		return nil
	}
	return durable.WriteFile(filepath.Join(c.folder, name), data)
}

// openFollowing opens what the node follows, if the namespace has a locator.
func (ns *Namespace) openFollowing() (err error) {
	if !ns.core.Located() {
		return nil
	}
	disk := &copies{files: map[string][]byte{}}
	if ns.node.dir != "" {
		disk.folder = namespaceDir(ns.node.dir, ns.id)
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return err
	}
	f := &following{now: new(wakeful).now, ask: ns.feedOf, faults: map[node.ID]int{}, apart: map[node.ID]time.Duration{}, told: map[node.ID]bool{}}
	ns.follows = f
	f.locator, err = directory.New(directory.Config{Shards: ns.core.Rule().Shards, Seed: binary.BigEndian.Uint64(seed[:]), Disk: disk})
	if err != nil {
		ns.follows = nil
		return fmt.Errorf("open the locator: %w", err)
	}
	if n := f.locator.Damaged(); n > 0 {
		ns.node.log.Warn("copies of the locator are damaged, or could not be read: they are fetched anew", logNamespace(ns), slog.Int("copies", n))
	}
	return nil
}

// untold logs that a set of this node could not be read by which others are told where keys are.
func (n *Node) untold(set *node.Set, err error) {
	n.log.Warn("a set could not be read, so that nothing is told of it: other nodes' look-ups of its keys ask hosts until it can be",
		slog.String("ns", set.Namespace().Members().Name()), slog.Int("set", int(set.Shard())), logError(err))
}

// rest makes durable what is known, for the next start.
func (f *following) rest(ns *Namespace) {
	if f == nil {
		return
	}
	if err := f.locator.Save(); err != nil {
		ns.node.log.Warn("the locator could not be saved: the next start fetches it anew", logNamespace(ns), logError(err))
	}
}

// followAll follows the feeds of all namespaces until the node closes.
func (n *Node) followAll() {
	defer n.gate.leave()
	var running sync.WaitGroup
	defer running.Wait()
	for n.pause(followTick) {
		for _, ns := range n.Namespaces() {
			if ns.follows == nil || !ns.gate.enter() {
				continue
			}
			running.Go(func() {
				defer ns.gate.leave()
				ns.heedTellers()
				hosts{ns}.Go(ns.ctx, func(context.Context) {
					for ns.core.TellAnew(ns.ctx) { // large sets, one after the other
					}
				})
				ns.followDue()
				ns.follows.logHosts(ns)
				ns.workDue()
			})
		}
	}
}

// workDue does the locator's work, if there is some and none is under way, beside its caller.
func (ns *Namespace) workDue() {
	run := ns.follows.locator.Work()
	if run == nil {
		return
	}
	hosts{ns}.Go(ns.ctx, func(context.Context) {
		if err := run(); err != nil {
			ns.node.log.Warn("copies of the locator could not be read or written: they are fetched anew, and written again", logNamespace(ns), logError(err))
		}
	})
}

// heedTellers tells the locator which hosts tell of each shard.
func (ns *Namespace) heedTellers() {
	f := ns.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := ns.core.Tellers(); t != f.tellers {
		f.tellers = t
		f.locator.SetHosts(t.Layout, t.Of)
		f.turns.set(t.All)
	}
}

// followDue asks each host that is due what is new, and for sets that are missing,
// beside its caller.
func (ns *Namespace) followDue() {
	f := ns.follows
	for {
		id, turn := f.turns.begin(f.now())
		if turn == nil {
			return
		}
		hosts{ns}.Go(ns.ctx, func(context.Context) {
			again, err := ns.followHost(ns.ctx, id, turn.waits && ns.node.limits.IdleTimeout >= 2*directory.MaxWait)
			if again && err == nil {
				ns.node.pause(followPause)
			}
			f.turns.ended(id, turn, howFollowed(again, err), f.now())
			if ns.ctx.Err() != nil {
				return
			}
			if err != nil {
				ns.node.log.With(logPeer(ID(id))).Debug("a host's feed was not followed", logNamespace(ns), logError(err))
			}
			ns.followDue() // another one may have waited for the place
		})
	}
}

// logHosts logs what is wrong with hosts' feeds, every followEvery.
func (f *following) logHosts(ns *Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now-f.logged >= followEvery {
		f.logged = now
		for _, s := range f.locator.Status() {
			f.tell(ns, &s)
		}
	}
}

// apartFor is for how long a host tells otherwise than others until the log says so: what is on its
// way to it has come by then.
const apartFor = time.Minute

// tell logs what is wrong with a host's feed. mu is held.
func (f *following) tell(ns *Namespace, s *directory.Status) {
	log := ns.node.log.With(logPeer(ID(s.Host)), logNamespace(ns))
	if s.Faults > f.faults[s.Host] {
		f.faults[s.Host] = s.Faults
		log.Warn("a host contradicts what it has told of its shards' keys: it is asked anew, and look-ups of these keys ask hosts meanwhile", slog.Int("faults", s.Faults))
	}
	now := f.now()
	if s.Apart == 0 || now-s.Heard > 2*directory.Fresh { // one that is not heard is away
		delete(f.apart, s.Host)
		delete(f.told, s.Host)
		return
	}
	since, known := f.apart[s.Host]
	if !known {
		since = now
		f.apart[s.Host] = now
	}
	if now-since >= apartFor && !f.told[s.Host] {
		f.told[s.Host] = true
		log.Warn("a host tells of a shard's keys otherwise than another host of the shard: one of the two hides keys, or has some that there are not, most likely the one that is named for the most shards; each look-up of these shards' keys asks hosts until both tell the same, or an admin removes one", slog.Int("shards", s.Apart))
	}
}

// waitForNews lets one poll wait for news. What is committed within newsGather is told in one answer.
func waitForNews(ctx context.Context) node.Waiter {
	var over <-chan time.Time
	return func(rung <-chan struct{}) bool {
		if over == nil {
			over = time.After(directory.MaxWait)
		}
		select {
		case <-rung:
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
		select {
		case <-time.After(newsGather):
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// followHost asks one host. wait: the first poll may wait there for news. again reports whether the
// next one may follow at once (directory.Turn.Again).
func (ns *Namespace) followHost(ctx context.Context, id node.ID, wait bool) (again bool, err error) {
	f := ns.follows
	ask := func(m directory.Message) (directory.Message, error) {
		ctx, cancel := context.WithTimeout(ctx, followPatience)
		defer cancel()
		return f.ask(ctx, id, m)
	}
	turn := f.locator.Follow(id, wait)
	for m := turn.Next(f.now()); m != nil; m = turn.Next(f.now()) {
		answer, err := ask(m)
		if told := turn.Answered(answer, f.now()); err == nil {
			err = told
		}
		if err != nil {
			return turn.Again(), err
		}
	}
	return turn.Again(), nil
}

// feedOf asks a host, which may be this node; nil: it does not tell of the set.
func (ns *Namespace) feedOf(ctx context.Context, id node.ID, m directory.Message) (directory.Message, error) {
	if ID(id) == ns.node.self.id {
		return ns.core.Tell(ctx, m, waitForNews(ctx))
	}
	n := ns.node
	n.metrics.routed.WithLabelValues("feed").Inc()
	ask, answer, _, err := n.askRouted(ctx, ID(id), func(id node.ID) (*wire.Ask, error) { return ns.core.AskFeed(id, m) })
	if err != nil {
		return nil, err
	}
	return ns.core.Feed(id, ask, answer)
}
