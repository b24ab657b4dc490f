package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, in whole
	// milliseconds, which then has no writer: two sites that import the same
	// dated items hold the same records.
	Time time.Time
	// Deleted imports a tombstone; Value is empty.
	Deleted bool
	// Expires, if not zero, is when the record expires, in whole milliseconds.
	Expires time.Time
}

func (item *Item) record() dbadapter.Record {
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
	// Late had dates up to which the members may have collected deleted records, or
	// that this node's role does not cover: they were written as of now. They are
	// among the others.
	Late int64
}

// Import collects items into batches. Its driver calls Add for each item, and
// before an item that Full reports, and at the end, commits the batch: Hold,
// Writes, the store's Apply, Judge.
type Import struct {
	Result ImportResult

	ns    *Namespace
	batch []Item
	keys  map[string]bool // of batch
	bytes int
	same  []bool // of the writes of batch: the content is there already
	// expired counts the items of batch that Writes has left out, late those that it
	// dates as of now.
	expired, late int
	writes        []dbadapter.Write
}

// Import begins an import.
func (ns *Namespace) Import() *Import { return &Import{ns: ns, keys: map[string]bool{}} }

// Check says what makes an item unfit to be imported.
func (im *Import) Check(item *Item) error {
	r := item.record()
	if err := r.Validate(); err != nil {
		return err
	}
	if last := im.ns.node.Now().Add(MaxTTL); item.Expires.After(last) {
		return fmt.Errorf("%w: it expires at %s; at most %s from now is allowed", dbadapter.ErrLimit, item.Expires.Format(time.RFC3339), MaxTTL)
	}
	if item.Time.IsZero() {
		return nil
	}
	return hlc.Check(item.Time, im.ns.node.Now(), im.ns.Members().Policy().MaxSkew)
}

// Full reports whether the batch must be committed before the item is added. A
// batch holds a key once: the next one sees what this one wrote.
func (im *Import) Full(item *Item) bool {
	return len(im.batch) == importBatch || im.bytes+len(item.Key)+len(item.Value) > importBytes || im.keys[string(item.Key)]
}

// Add adds an item to the batch, which keeps a copy.
func (im *Import) Add(item *Item) {
	r := item.record()
	r = r.Clone()
	im.batch = append(im.batch, Item{r.Key, r.Value, item.Time, item.Deleted, item.Expires})
	im.keys[string(item.Key)] = true
	im.bytes += len(item.Key) + len(item.Value)
}

// Pending is how many items wait in the batch.
func (im *Import) Pending() int { return len(im.batch) }

// Hold takes the namespace's commits for the batch.
func (im *Import) Hold() (release func()) {
	im.ns.commits.Lock()
	return im.ns.commits.Unlock
}

// Writes turns the batch into signed writes. It leaves out the undated items whose
// content is there already, and those that have expired, so that the result may be
// empty: an expired record would hide what is there.
func (im *Import) Writes() ([]dbadapter.Write, error) {
	snap, err := im.ns.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	var writes []dbadapter.Write
	dated := dbadapter.Timestamp(0) // the earliest
	im.same, im.expired, im.late = im.same[:0], 0, 0
	for i := range im.batch {
		item := &im.batch[i]
		r := item.record()
		if r.Expired(im.ns.node.Now()) {
			im.expired++
			continue
		}
		held, err := snap.Get(item.Key)
		if err != nil && !errors.Is(err, dbadapter.ErrNotFound) {
			return nil, err
		}
		there := err == nil && held.SameContent(&r)
		late := !item.Time.IsZero() && im.ns.late(dbadapter.TimestampAt(item.Time))
		if late && !there {
			im.late++
		}
		if item.Time.IsZero() || late {
			if there || err != nil && item.Deleted {
				continue
			}
			found := err == nil
			if r.Version, err = im.ns.nextVersion(); err != nil {
				return nil, err
			}
			if found {
				r.Replace(&held)
			}
		} else {
			r.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)}
			im.ns.clock.Observe(hlc.Timestamp(r.Version.Clock)) // it may be a little ahead
			if dated == 0 || r.Version.Clock < dated {
				dated = r.Version.Clock
			}
		}
		hashed, err := dbadapter.Hash(im.ns.Keys.Hasher, r)
		if err != nil {
			return nil, err
		}
		writes = append(writes, dbadapter.Write{Record: hashed})
		im.same = append(im.same, there)
	}
	im.writes = writes
	if dated > 0 {
		if err := im.ns.hold(dated); err != nil {
			return nil, err
		}
	}
	return writes, im.ns.authorize(writes)
}

// Judge counts what became of the batch, and begins the next one.
func (im *Import) Judge(outcomes []dbadapter.Outcome) {
	im.ns.vouching.waiting.note(im.writes, outcomes)
	for i, o := range outcomes {
		switch {
		case o.Result == dbadapter.Applied:
			im.Result.Written++
		case o.Result == dbadapter.Same || im.same[i]:
			im.Result.Unchanged++
		default:
			im.Result.Stale++
		}
	}
	im.Result.Unchanged += int64(len(im.batch) - len(outcomes) - im.expired)
	im.Result.Expired += int64(im.expired)
	im.Result.Late += int64(im.late)
	im.Result.Items += int64(len(im.batch))
	im.batch, im.bytes = im.batch[:0], 0
	clear(im.keys)
}
