package node

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// movesBehind drives look-ups of which a hidden record goes from one shard into the one that the entry names, between the look-up
// of the one and of the other.
type movesBehind struct {
	located
	named  placement.Shard
	looks  int // of the named shard
	moves  bool
	record *dbadapter.Record
	steady time.Duration
}

func (d *movesBehind) LookUpIn(_ context.Context, in placement.Shard, _ []byte, _ bool) (LookedUp, error) {
	f := LookedUp{Found: route.Found{Sure: true}, Shard: in}
	if in == d.named {
		if d.looks++; d.moves {
			f.Record = d.record
		}
	}
	return f, nil
}

func (d *movesBehind) Each(_ context.Context, sets []placement.Shard, do func(placement.Shard)) {
	for _, in := range sets {
		do(in)
	}
}

func (d *movesBehind) Steady() time.Duration { return d.steady }

// A look behind an entry without its record is sure of nothing where a record has come into the named shard meanwhile: another shard
// may have had it, and have none any more when it is asked. Before EntryPatience no shard is asked.
func TestLookBehindLooksTwice(t *testing.T) {
	const named = placement.Shard(3)
	ns := newMachine(1).holdsAll(t, &placement.Rule{Kind: placement.Writer, Shards: 8, Replicas: 1})
	entry := directory.EntryFor(&dbadapter.Record{Key: []byte("key"), Version: at(2, 2)}, named)
	for _, moves := range []bool{false, true} {
		d := &movesBehind{
			located: located{locator: must(directory.New(directory.Config{Shards: 8, Disk: files{}}))}, named: named, moves: moves,
			record: &dbadapter.Record{Key: entry.Key, Value: []byte("hidden"), Version: at(3, 1)},
		}
		w := ns.NewByWriter(d)
		look := func() (found LookedUp) {
			found.doubt("nothing is there")
			w.lookBehind(t.Context(), named, &entry, &found)
			return found
		}
		if found := look(); found.Sure || d.looks > 0 {
			t.Errorf("moves %t: at first %+v, after %d looks", moves, found, d.looks)
		}
		d.steady += EntryPatience
		if found := look(); found.Sure == moves || found.Record != nil {
			t.Errorf("moves %t: %+v", moves, found)
		}
	}
}
