package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a process keeps and does where the namespace has a locator, which follows the hosts' feeds.

const (
	// feedEvery is how often each host is polled, as in package peer.
	feedEvery = 2 * time.Second
	// clockFrom is what the locator's clock begins with: what was heard before must be old.
	clockFrom = time.Hour
)

// follower is a process's state of such a namespace.
type follower struct {
	process *process
	locator *directory.Locator
	tellers *node.Tellers
	files   map[string][]byte // of the locator: a process that starts fetches all anew
	asking  map[node.ID]bool  // that are being polled
	reading bool              // sets, beside polls
}

// Read implements directory.Disk.
func (f *follower) Read(name string) ([]byte, error) { return f.files[name], nil }

// Write implements directory.Disk.
func (f *follower) Write(name string, data []byte) error {
	f.files[name] = slices.Clone(data)
	return nil
}

// openFollower opens what the process follows.
func (p *process) openFollower() (err error) {
	f := &follower{process: p, files: map[string][]byte{}, asking: map[node.ID]bool{}}
	f.locator, err = directory.New(directory.Config{Shards: p.ns.Rule().Shards, Seed: p.draw(node.ForNonce), Disk: f, Workers: 1})
	if err != nil {
		return fmt.Errorf("open the locator: %w", err)
	}
	p.follower = f
	p.after(feedEvery, f.poll)
	return nil
}

func (f *follower) now() time.Duration { return clockFrom + f.process.node.world.Now() }

// poll polls each host that is not being polled, and does it again.
func (f *follower) poll() {
	p := f.process
	p.after(feedEvery, f.poll)
	if t := p.ns.Tellers(); t != f.tellers {
		f.tellers = t
		f.locator.SetHosts(t.Layout, t.Of)
	}
	for _, id := range f.tellers.All {
		if !f.asking[id] {
			f.asking[id] = true
			f.follow(id, f.locator.Follow(id, false))
		}
	}
	f.work()
}

// follow goes on with a turn of a host.
func (f *follower) follow(id node.ID, turn *directory.Turn) {
	m := turn.Next(f.now())
	if m == nil {
		delete(f.asking, id)
		f.work()
		return
	}
	f.tell(id, m, func(answer directory.Message) {
		err := turn.Answered(answer, f.now())
		if answer != nil {
			f.process.refused(err)
		}
		if answer == nil || err != nil {
			delete(f.asking, id)
			return
		}
		f.follow(id, turn)
	})
}

// tell asks a host, which may be this node; nil: it has not answered.
func (f *follower) tell(id node.ID, m directory.Message, done func(directory.Message)) {
	p := f.process
	if id == p.node.id {
		p.flush() // so that only what is durable is told
		answer, err := p.ns.Tell(context.Background(), m, nil)
		p.refused(err)
		done(answer)
		return
	}
	ask, err := p.ns.AskFeed(id, m)
	if err != nil {
		done(nil)
		return
	}
	p.route(p.node.cluster.byID[id].number, ask, func(answer wire.Message, _ bool, err error) {
		if err != nil {
			done(nil)
			return
		}
		told, err := p.ns.Feed(id, ask, answer)
		p.refused(err)
		done(told)
	})
}

// work reads what is to be told of as a whole, and does the locator's work, which takes no time here.
func (f *follower) work() {
	f.tellAnew()
	for run := f.locator.Work(); run != nil; run = f.locator.Work() {
		f.process.refused(run())
	}
}
