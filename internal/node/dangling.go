package node

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// Where an entry of the directory leads to no record, its author is about to write that, or has ended
// in between. The entry may hide a record of another shard then, which was acknowledged: its hosts
// write it anew (meeting.go), once they have found that out. So a look-up is not sure at first. Once
// the record was not there for EntryPatience, it asks all shards, which is dear: if none of them has the
// key, that is sure. A put writes to the shard that the entry names, and a deletion needs no record
// there; either ends the matter for all.

const (
	// danglingMost entries are remembered, by hashes of their keys, in some 7 MiB: as many as imports leave behind them whose
	// node fails, 8 times. Where there is no room, those that were noted longer than danglingFor ago are forgotten.
	danglingMost = 1 << 16
	danglingFor  = 10 * time.Minute
)

// dangling are entries that were found to lead to no record, by key.
type dangling struct {
	mu sync.Mutex // guards what follows
	of map[danglingKey]absence
}

type danglingKey [16]byte

func danglingOf(key []byte) danglingKey {
	sum := sha256.Sum256(key)
	return danglingKey(sum[:16])
}

// since is since when the entry of a key, of this version, is known to lead to no record, which it
// notes. Where there is no room for that, it is now.
func (d *dangling) since(key []byte, entry dbadapter.Version, now time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	hash := danglingOf(key)
	a, ok := d.of[hash]
	if ok && a.entry == entry {
		return a.since
	}
	if !ok && len(d.of) >= danglingMost {
		maps.DeleteFunc(d.of, func(_ danglingKey, a absence) bool { return now-a.since >= danglingFor })
		if len(d.of) >= danglingMost {
			return now
		}
	}
	if d.of == nil {
		d.of = map[danglingKey]absence{}
	}
	d.of[hash] = absence{entry, now}
	return now
}

// Absent reports whether the entry of a key, of this version, has led to no record of it for AbsentFor: its author has ended.
func (w *ByWriter) Absent(key []byte, entry dbadapter.Version) bool {
	now := w.do.Steady()
	return now-w.dangling.since(key, entry, now) >= AbsentFor
}

// came forgets the entry of a key: its record is there.
func (d *dangling) came(key []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, danglingOf(key))
}

// dangles reports whether an entry that names a shard leads to no record of it, when the shard holds
// found. A record that is older than the entry is the last one that was acknowledged; a tombstone
// may be of what was there before.
func dangles(entry, found *dbadapter.Record) bool {
	return found == nil || found.Deleted && found.Version.Compare(entry.Version) < 0
}

// lookBehind makes a look-up sure whose entry leads to no record, if no other shard has one for sure;
// if one has, that is what is found. named is the shard that the entry names.
func (w *ByWriter) lookBehind(ctx context.Context, named placement.Shard, entry *dbadapter.Record, found *LookedUp) {
	if now := w.do.Steady(); now-w.dangling.since(entry.Key, entry.Version, now) < EntryPatience {
		return
	}
	ctx, over := context.WithCancel(ctx)
	defer over()
	var others []placement.Shard
	for shard := range placement.Shard(w.ns.rule.Shards) {
		if shard != named {
			others = append(others, shard)
		}
	}
	before := found.Record
	var mu sync.Mutex // guards found, and what follows
	sure := true
	w.do.Each(ctx, others, func(shard placement.Shard) {
		other, err := w.do.LookUpIn(ctx, shard, entry.Key, false)
		mu.Lock()
		defer mu.Unlock()
		found.Add(&other)
		if rather(other.Record, found.Record) {
			found.Record, found.Shard = other.Record, shard
		}
		if err != nil || !other.Sure || there(other.Record) {
			sure = false
			over() // it cannot become sure any more
		}
	})
	if !sure || ctx.Err() != nil {
		found.Sure = false
		return
	}
	// A record that another shard had may have gone there behind the first look, since it was written anew into this one, or since
	// a later write has come. So nothing may have changed here, by the word of each host.
	if found.Sure = w.still(ctx, named, entry.Key, before, found) && w.still(ctx, w.ns.Entries(entry.Key), entry.Key, entry, found); found.Sure {
		found.Doubt = ""
	}
}

// still reports whether all nodes that may hold a key in a set have said that this is what it holds.
func (w *ByWriter) still(ctx context.Context, set placement.Shard, key []byte, held *dbadapter.Record, found *LookedUp) bool {
	now, err := w.do.LookUpIn(ctx, set, key, true)
	found.Add(&now)
	return err == nil && now.Sure && sameVersion(now.Record, held) && !slices.ContainsFunc(now.Heard, func(h route.Heard) bool { return h.Answer == nil })
}

func sameVersion(a, b *dbadapter.Record) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Version == b.Version
}

// rather reports whether what one shard holds of a key says more than what another one does: a record
// more than a tombstone, of two alike the later one, and anything more than nothing.
func rather(a, b *dbadapter.Record) bool {
	if a == nil || b == nil || there(a) != there(b) {
		return a != nil && (b == nil || there(a))
	}
	return a.Compare(b) > 0
}
