package node

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
)

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, in whole
	// milliseconds. The version then has no writer, so two sites that import the
	// same dated items hold the same records.
	Time time.Time
	// Deleted imports a tombstone; Value is empty.
	Deleted bool
	// Expires, if not zero, is when the record expires, in whole milliseconds.
	Expires time.Time
}

// Record is the record of the item, without a version.
func (item *Item) Record() dbadapter.Record {
	r := dbadapter.Record{Key: item.Key, Value: item.Value, Deleted: item.Deleted}
	switch {
	case item.Expires.IsZero():
	case item.Expires.Before(dbadapter.Epoch): // past, and perhaps before what a Timestamp can say
		r.Expires = dbadapter.TimestampAt(dbadapter.Epoch)
	default:
		r.Expires = dbadapter.TimestampAt(item.Expires)
	}
	return r
}

// ImportResult counts what became of imported items.
type ImportResult struct {
	Items     int64 // dealt with, in order
	Written   int64 // new or changed
	Unchanged int64 // their content was there already
	Stale     int64 // dated before the record that is there
	Expired   int64 // had expired, and were left out
	Full      int64 // found their index full, and were left out
	// Refused had dates that are not taken. Up to them members may have collected
	// deleted records, or this node's role does not cover them. Nothing of them was
	// written.
	Refused int64
	// AsNew had such dates too, and were written as of now, as Import.AsNew asks. They are among
	// the others.
	AsNew int64
	// From is the date from which on items are taken, as of the last one that was refused.
	From time.Time
	// Earliest is the earliest date that was taken, of this import and of those that it goes on with.
	Earliest time.Time
}

// Import collects items into batches. Its driver calls Add for each item, and Cut
// where Add has no room for it, and at the end. It commits the batches in their
// order, each durable in one transaction: Hold, Writes, the store's Apply, Judge, or
// Note behind one that failed.
//
// While batches are in Apply, a driver may call Writes of the next under the same
// Hold, and apply it. It may not if the next Follows one of them, or the commits
// are Wanted.
//
// From the first item with a date on, this node's promise stays below the earliest date that
// was taken, until End.
type Import struct {
	// Result is written by Judge.
	Result ImportResult
	// AsNew has an item whose date is not taken written as of now, unless its key holds something
	// later than the date.
	AsNew bool
	// Refused, if not nil, hears from Judge of each item that is refused, in order.
	// The number says which one of the import it is, counted from 0. The item is
	// valid during the call.
	Refused func(at int64, item *Item)

	set   *Set
	dates watermark.Import // that the promise stays below
	batch *ImportBatch
	pace  pace

	mu    sync.Mutex // guards what follows
	spare []room     // of batches that are done
}

// room is the memory of a batch. It serves for another batch when this one is done,
// since a store keeps nothing of what it is given.
type room struct {
	items []Item
	// indices are those of the items' keys, and places has the first item of each. Two keys of
	// one index are not in one batch.
	indices []dbadapter.Index
	places  map[dbadapter.Index]int
	slots   []int  // for the first item of each key, which write is of it; -1: none
	copies  []byte // of the items' keys and values
	writes  []dbadapter.Write
	same    []bool // of the writes: the content is there already
	// folded counts, of the writes, the items of the same key that it takes the
	// place of, or wins over. They are not written.
	folded []ImportResult
}

// take is the memory of a batch that is done, or new memory.
func (im *Import) take() (r room) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if last := len(im.spare) - 1; last >= 0 {
		r, im.spare = im.spare[last], im.spare[:last]
		clear(r.places)
		r = room{r.items[:0], r.indices[:0], r.places, r.slots[:0], r.copies[:0], r.writes[:0], r.same[:0], r.folded[:0]}
	} else {
		r.places = map[dbadapter.Index]int{}
	}
	return r
}

func (im *Import) done(b *ImportBatch) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.spare = append(im.spare, b.room)
	b.room = room{}
}

// ImportBatch is what one transaction imports.
type ImportBatch struct {
	im *Import
	room
	most   int // items
	weight int // of the items, as a store counts it
	// expired and stale count the items that Writes has left out. Stale are those
	// that lose by their date, which is not taken either. asNew are those that it
	// dates as of now.
	expired, stale, asNew int
	refused               []int // places of items whose dates are not taken
	from                  time.Time
	earliest              dbadapter.Timestamp // date that Writes takes; watermark.Never: none
}

// Import begins an import. End must be called.
func (set *Set) Import() *Import {
	im := &Import{set: set, pace: pace{seen: set.commits.singles.Load()}}
	im.Cut()
	return im
}

// End ends the import: the node's promise may rise again.
func (im *Import) End() {
	im.set.gc.View(func(w *watermark.Watermark) { w.EndImport(&im.dates) })
}

// promised says up to when this node has promised to hold all that members write, or has collected. Until
// the import ends it promises nothing that reaches earliest, of the dates that are later. commits is held.
func (im *Import) promised(items []Item) (promised, earliest dbadapter.Timestamp) {
	dates := make([]dbadapter.Timestamp, 0, len(items)+1)
	if !im.Result.Earliest.IsZero() {
		dates = append(dates, dbadapter.TimestampAt(im.Result.Earliest))
	}
	for i := range items {
		if !items[i].Time.IsZero() {
			dates = append(dates, dbadapter.TimestampAt(items[i].Time))
		}
	}
	im.set.gc.View(func(w *watermark.Watermark) { promised, earliest = w.Import(&im.dates, dates) })
	return promised, earliest
}

// takenFrom is the least date, of one and of those behind it, by which an item is taken.
func (set *Set) takenFrom(at, promised dbadapter.Timestamp) dbadapter.Timestamp {
	at = max(at, promised+1)
	if members := set.ns.Members(); !members.Policy().Unsigned {
		least, ok := members.WritesFrom(set.ns.self, at)
		if !ok {
			return watermark.Never
		}
		at = least
	}
	return at
}

// Cut takes what has been added as a batch, and begins the next one. It is small while
// single writes come, which wait for a batch.
func (im *Import) Cut() *ImportBatch {
	b := im.batch
	im.batch = &ImportBatch{
		im: im, room: im.take(),
		most: im.pace.next(im.set.commits.singles.Load(), im.set.ns.node.elapsed(), importLeast, importMost),
	}
	return b
}

// Check says what makes an item unfit to be imported.
func (im *Import) Check(item *Item) error { return im.set.ns.CheckItem(item) }

// CheckItem is Check of an import into whatever shard.
func (ns *Namespace) CheckItem(item *Item) error {
	r := item.Record()
	if err := r.Validate(); err != nil {
		return err
	}
	if last := ns.node.Now().Add(MaxTTL); item.Expires.After(last) {
		return fmt.Errorf("%w: it expires at %s; at most %s from now is allowed", dbadapter.ErrLimit, item.Expires.Format(time.RFC3339), MaxTTL)
	}
	if item.Time.IsZero() {
		return nil
	}
	return hlc.Check(item.Time, ns.node.Now(), ns.Members().Policy().MaxSkew)
}

// Add adds an item to the batch, which keeps a copy, if there is room for it. A
// batch that is empty takes every item. A batch writes a key once. It holds all of
// the key's items, and Writes finds what stands when they are written one after the
// other.
func (im *Import) Add(item *Item) bool {
	b := im.batch
	index := im.set.Keys.Hasher.Index(item.Key)
	weight := (&dbadapter.Record{Key: item.Key, Value: item.Value}).Weight()
	if len(b.items) > 0 {
		if len(b.items) >= b.most || b.weight+weight > importBytes {
			return false
		}
	}
	first, again := b.places[index]
	if again && !bytes.Equal(b.items[first].Key, item.Key) {
		return false
	}
	if !again {
		b.places[index] = len(b.items)
	}
	b.items = append(b.items, Item{b.copy(item.Key), b.copy(item.Value), item.Time, item.Deleted, item.Expires})
	b.indices = append(b.indices, index)
	b.weight += weight
	return true
}

// copy is a copy of a key or a value. All of a batch lie in one piece of memory, but for
// those that came before it had to grow.
func (b *ImportBatch) copy(of []byte) []byte {
	if len(of) == 0 {
		return nil
	}
	at := len(b.copies)
	b.copies = append(b.copies, of...)
	return b.copies[at:len(b.copies):len(b.copies)]
}

// Hold takes the set's commits for a batch, or for several.
func (im *Import) Hold() (release func()) {
	im.set.commits.Lock()
	return im.set.commits.Unlock
}

// Wanted reports whether others wait for the set's commits: the driver then
// makes no further batch before it has given them back.
func (im *Import) Wanted() bool { return im.set.commits.wanted() }

// Items is how many items the batch has.
func (b *ImportBatch) Items() int { return len(b.items) }

// Follows reports whether the batch has a key of another one, and so must see what
// that has written.
func (b *ImportBatch) Follows(other *ImportBatch) bool {
	for _, index := range b.indices {
		if _, ok := other.places[index]; ok {
			return true
		}
	}
	return false
}

// Writes turns the batch into signed writes. It leaves out undated items whose
// content is there already, and items whose dates are not taken. It leaves out
// those that have expired, too: an expired record would hide what is there. So the
// result may be empty.
func (b *ImportBatch) Writes() ([]dbadapter.Write, error) {
	set := b.im.set
	if err := set.takes(); err != nil {
		return nil, err
	}
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	writes := slices.Grow(b.writes[:0], len(b.items))
	dated := dbadapter.Timestamp(0) // the earliest
	b.same, b.folded, b.refused = b.same[:0], b.folded[:0], b.refused[:0]
	b.expired, b.stale, b.asNew, b.from, b.earliest = 0, 0, 0, time.Time{}, watermark.Never
	b.slots = append(b.slots[:0], slices.Repeat([]int{-1}, len(b.items))...)
	var promised dbadapter.Timestamp
	if slices.ContainsFunc(b.items, func(item Item) bool { return !item.Time.IsZero() }) {
		promised, b.earliest = b.im.promised(b.items)
	}
	holdings := holdings{
		snap: snap, keys: len(b.items),
		key:   func(i int) []byte { return b.items[i].Key },
		index: func(i int) dbadapter.Index { return b.indices[i] },
	}
	for i := range b.items {
		held, err := holdings.under(i)
		if err != nil {
			return nil, err
		}
		item := &b.items[i]
		stored, slot := held, &b.slots[b.places[b.indices[i]]]
		if *slot >= 0 && beats(&writes[*slot].Record.Record, held) {
			held = &writes[*slot].Record.Record
		}
		r := item.Record()
		if r.Expired(set.ns.node.Now()) {
			b.expired++
			continue
		}
		there := held != nil && held.SameContent(&r)
		undated := item.Time.IsZero()
		if !undated {
			r.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)}
			switch from := set.takenFrom(r.Version.Clock, promised); {
			case from == r.Version.Clock: // its date is taken
			case there || held == nil && item.Deleted:
				continue
			case !beats(&r, held):
				b.stale++ // as if its date was taken
				continue
			case !b.im.AsNew:
				b.refused, b.from = append(b.refused, i), DateFrom(from)
				continue
			default:
				undated = true
				b.asNew++
			}
		}
		if undated {
			if there || held == nil && item.Deleted {
				continue
			}
			if r.Version, err = set.ns.NextVersion(); err != nil {
				return nil, err
			}
			r.Replace(held)
		} else {
			set.ns.clock.Observe(hlc.Timestamp(r.Version.Clock)) // it may be a little ahead
			if dated == 0 || r.Version.Clock < dated {
				dated = r.Version.Clock
			}
		}
		hashed, err := dbadapter.Hash(set.Keys.Hasher, r)
		if err != nil {
			return nil, err
		}
		switch {
		case *slot < 0:
			*slot = len(writes)
			writes = append(writes, dbadapter.Write{Record: hashed})
			b.same, b.folded = append(b.same, there), append(b.folded, ImportResult{})
		case beats(&r, held):
			b.folded[*slot].count(&writes[*slot].Record.Record, stored)
			writes[*slot].Record, b.same[*slot] = hashed, there
		default:
			b.folded[*slot].count(&r, held)
		}
	}
	b.writes = writes
	if dated > 0 {
		if err := set.gc.Hold(b.earliest, dated); err != nil {
			return nil, err
		}
	}
	return writes, set.authorize(writes)
}

// DateFrom is the first date of an item that is not before a reading.
func DateFrom(at dbadapter.Timestamp) time.Time {
	from := at.Time().UTC()
	if dbadapter.TimestampAt(from) < at {
		from = from.Add(time.Millisecond)
	}
	return from
}

// beats reports whether a record takes the place of what is held.
func beats(r, held *dbadapter.Record) bool { return held == nil || r.Compare(held) > 0 }

// count counts what would become of a record that is written over another.
func (r *ImportResult) count(record, held *dbadapter.Record) {
	r.Items++
	switch {
	case beats(record, held):
		r.Written++
	case record.SameContent(held):
		r.Unchanged++
	default:
		r.Stale++
	}
}

// Note takes note of what was applied of the batch, as of every commit, and ends
// it. A driver calls it, and not Judge, for a batch behind one that failed. The
// import goes on behind the last item that the result counts, and is to pass by
// those that failed.
func (b *ImportBatch) Note(outcomes []dbadapter.Outcome) {
	b.note(outcomes)
	b.im.done(b)
}

func (b *ImportBatch) note(outcomes []dbadapter.Outcome) {
	b.im.set.written(b.writes, outcomes)
	b.im.set.pushes.Written(b.writes, outcomes)
}

// Judge takes note of the batch, counts what became of it, and ends it. What Writes
// has returned stays as it is until the next Cut.
func (b *ImportBatch) Judge(outcomes []dbadapter.Outcome) {
	b.note(outcomes)
	defer b.im.done(b)
	r := &b.im.Result
	left := len(b.items) - len(outcomes) - b.expired - b.stale - len(b.refused) // those that are there already
	for i, o := range outcomes {
		folded := b.folded[i]
		if o.Result == dbadapter.Full { // so would each of its key have been
			folded.Written, folded.Unchanged, folded.Stale, folded.Full = 0, 0, 0, folded.Items
		}
		left -= int(folded.Items)
		r.Written += folded.Written
		r.Unchanged += folded.Unchanged
		r.Stale += folded.Stale
		r.Full += folded.Full
		switch {
		case o.Result == dbadapter.Applied:
			r.Written++
		case o.Result == dbadapter.Full:
			r.Full++
		case o.Result == dbadapter.Same || b.same[i]:
			r.Unchanged++
		default:
			r.Stale++
		}
	}
	r.Unchanged += int64(left)
	r.Stale += int64(b.stale)
	r.Expired += int64(b.expired)
	r.AsNew += int64(b.asNew)
	if len(b.refused) > 0 {
		r.Refused, r.From = r.Refused+int64(len(b.refused)), b.from
	}
	if b.earliest != watermark.Never {
		r.Earliest = b.earliest.Time().UTC()
	}
	for _, i := range b.refused {
		if b.im.Refused != nil {
			b.im.Refused(r.Items+int64(i), &b.items[i])
		}
	}
	r.Items += int64(len(b.items))
}
