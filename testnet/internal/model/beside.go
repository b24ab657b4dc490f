package model

import (
	"context"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// How a process reads sets beside polls, of which it is to tell as a whole: a large set takes time, in
// which it changes, is dropped, or its process dies. In half of the runs of a node it reads even an empty
// one so.

// longestReading is how long a reading takes at most.
const longestReading = 4 * time.Second

// readAtOnce is node.Config.ReadAtOnce of this run.
func (p *process) readAtOnce() int {
	if n := p.node; n.world.Chance(0.5, sim.ForTelling, uint64(n.number), n.starts, 0) {
		return -1
	}
	return 0
}

// tellAnew reads the sets that are to be read beside polls, one after the other.
func (f *follower) tellAnew() {
	if f.reading {
		return
	}
	f.reading = true
	f.process.routine(func(ctx context.Context) {
		for f.process.ns.TellAnew(context.WithValue(ctx, besideKey{}, true)) {
		}
		f.reading = false
	})
}

// readLong waits for as long as a reading takes.
func (p *process) readLong(done func()) {
	n := p.node
	n.readings++
	p.after(n.world.Between(0, longestReading, sim.ForTelling, uint64(n.number), n.starts, n.readings), done)
}

type besideKey struct{}

// view is a snapshot that takes time to be read, where it is read beside polls.
type view struct{ dbadapter.Snapshot }

// Snapshot implements dbadapter.Namespace.
func (s *store) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := s.Namespace.Snapshot()
	if err != nil {
		return nil, err
	}
	return view{snap}, nil
}

// Pairs implements dbadapter.Snapshot.
func (v view) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	pairs := v.Snapshot.Pairs(ctx, from, to)
	if ctx.Value(besideKey{}) == nil {
		return pairs
	}
	r := routineOf(ctx)
	return func(yield func(dbadapter.Pair, error) bool) {
		if err := r.await(r.process.readLong); err != nil {
			yield(dbadapter.Pair{}, err)
			return
		}
		pairs(yield)
	}
}
