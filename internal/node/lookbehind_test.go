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
// of the one and of the other; or a later entry has come by then, or a host is silent.
type movesBehind struct {
	located
	named                 placement.Shard
	entry                 *dbadapter.Record
	looks                 int // of the named shard
	moves, writes, silent bool
	steady                time.Duration
}

func (d *movesBehind) LookUpIn(_ context.Context, in placement.Shard, _ []byte, all bool) (LookedUp, error) {
	f := LookedUp{Found: route.Found{Sure: true}, Shard: in}
	switch {
	case in == d.named:
		if d.looks++; d.moves {
			f.Record = &dbadapter.Record{Key: d.entry.Key, Value: []byte("hidden"), Version: at(3, 1)}
		}
	case in >= 8 && d.writes:
		f.Record = &dbadapter.Record{Key: d.entry.Key, Value: d.entry.Value, Version: at(3, 2)}
	case in >= 8:
		f.Record = d.entry
	}
	f.Heard = []route.Heard{{Peer: "1", Answer: &route.Answer{}}}
	if d.silent && all {
		f.Heard = append(f.Heard, route.Heard{Peer: "2"})
	}
	return f, nil
}

func (d *movesBehind) Each(_ context.Context, sets []placement.Shard, do func(placement.Shard)) {
	for _, in := range sets {
		do(in)
	}
}

func (d *movesBehind) Steady() time.Duration { return d.steady }

// A look behind an entry without its record is sure of nothing where a record has come into the named shard meanwhile, or another
// entry: another shard may have had a record, and have none any more when it is asked. Nor is it where a host that may have heard
// of either does not answer. Before EntryPatience no shard is asked.
func TestLookBehindLooksTwice(t *testing.T) {
	const named = placement.Shard(3)
	ns := newMachine(1).holdsAll(t, &placement.Rule{Kind: placement.Writer, Shards: 8, Replicas: 1})
	entry := directory.EntryFor(&dbadapter.Record{Key: []byte("key"), Version: at(2, 2)}, named)
	for name, d := range map[string]*movesBehind{
		"nothing has come": {},
		"a record moves":   {moves: true},
		"another entry":    {writes: true},
		"a silent host":    {silent: true},
	} {
		d.located, d.named, d.entry = located{locator: must(directory.New(directory.Config{Shards: 8, Disk: files{}}))}, named, &entry
		w := ns.NewByWriter(d)
		look := func() (found LookedUp) {
			found.doubt("nothing is there")
			w.lookBehind(t.Context(), named, &entry, &found)
			return found
		}
		if found := look(); found.Sure || d.looks > 0 {
			t.Errorf("%s: at first %+v, after %d looks", name, found, d.looks)
		}
		d.steady += EntryPatience
		if found := look(); found.Sure != (name == "nothing has come") || found.Record != nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
