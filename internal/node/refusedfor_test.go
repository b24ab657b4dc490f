package node

import (
	"context"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// entryAway drives look-ups of which the entry's hosts that answer hold entry, and one shard the record.
type entryAway struct {
	located
	ns    *Namespace
	entry *dbadapter.Record
	shard placement.Shard
}

func (d *entryAway) LookUpIn(_ context.Context, in placement.Shard, key []byte, _ bool) (LookedUp, error) {
	f := LookedUp{Found: route.Found{Sure: true}, Shard: in}
	switch {
	case d.ns.Rule().Directory(in):
		f.Record = d.entry
	case in == d.shard:
		f.Record = &dbadapter.Record{Key: key, Value: []byte("held"), Version: at(2, 2)}
	}
	return f, nil
}

// A write that was refused for an entry goes into the shard of that one, where its record is, also if the host
// that has told of it answers no more, and the others hold no entry, a tombstone, or still the entry before, of another
// shard.
func TestWriteGoesWhereItWasRefusedFor(t *testing.T) {
	const shard = placement.Shard(3)
	a := newMachine(1)
	ns := a.holdsAll(t, &placement.Rule{Kind: placement.Writer, Shards: 8, Replicas: 1})
	record := &dbadapter.Record{Key: []byte("key"), Value: []byte("held"), Version: at(2, 2)}
	named := directory.EntryFor(record, shard)
	before := directory.EntryFor(&dbadapter.Record{Key: record.Key, Value: []byte("before"), Version: at(1, 1)}, 1)
	for name, entry := range map[string]*dbadapter.Record{
		"no entry": nil, "a tombstone": {Key: record.Key, Deleted: true, Version: at(1, 3)}, "its own": {Key: record.Key, Deleted: true, Version: at(3, 1)}, "the one before": &before,
	} {
		w := ns.NewByWriter(&entryAway{located: located{locator: must(directory.New(directory.Config{Shards: 8, Disk: files{}}))}, ns: ns, entry: entry, shard: shard})
		own := []dbadapter.Version{at(3, 1)}
		in, seen, err := w.writtenIn(t.Context(), record.Key, false, own, []*dbadapter.Record{&named})
		if err != nil || in != shard {
			t.Errorf("%s: it goes into shard %d, having seen %v: %v", name, in, seen, err)
		}
		in, _, err = w.writtenIn(t.Context(), record.Key, true, nil, nil)
		want := ns.OwnShard(record.Key)
		if entry == &before {
			want = 1
		}
		if err != nil || in != want {
			t.Errorf("%s: a first try goes into shard %d, want %d: %v", name, in, want, err)
		}
	}
}
