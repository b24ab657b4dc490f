package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// A watch tells each key's latest state. The store keeps the order of changes, and
// no record that was overwritten. So a piece of the log, a window, is read with one
// snapshot that is no older. A change after which the bucket has stayed as it was
// is told with the record that the snapshot holds. One that another change of its
// key has followed is passed over, since that one is still ahead.

// The bounds of a window are on its changes, and on the bytes of keys and records
// in it. Beyond them no further change is taken. They bound what a watcher that is
// far behind has in memory.
const (
	windowChanges = 256
	windowBytes   = 128 << 10
)

// Window is what a piece of the change log says. Watchers share it: it must not be
// changed.
type Window struct {
	log dbadapter.LogID
	// From and To: the changes behind From up to To. End is the sequence number of the
	// snapshot: where it is To, no change follows yet.
	From, To, End uint64
	// Bytes is about what the window takes in memory.
	Bytes int
	items []item
}

// item is one key of one change.
type item struct {
	seq  uint64
	at   Cursor // behind the item
	key  []byte
	held *dbadapter.Record // as of Window.End; nil: the key holds no record
	// passed: another change of the key follows, up to Window.End.
	passed bool
	// early: the record that is held may be that of another change of the key which
	// follows, up to Window.End. Keys that share an index cannot be told apart.
	early bool
}

// window reads the change log behind a place.
func (p *Part) window(ctx context.Context, log dbadapter.LogID, after uint64) (w *Window, err error) {
	if p.Store.Log() == log {
		w, err = p.readWindow(ctx, log, after)
	}
	if p.Store.Log() != log { // perhaps since we looked: the snapshot can be of either log
		return nil, fmt.Errorf("%w: it is of another log than that of the store, which was restored or repaired since; %s", ErrCursorExpired, watchAnew)
	}
	return w, err
}

func (p *Part) readWindow(ctx context.Context, log dbadapter.LogID, after uint64) (*Window, error) {
	snap, err := p.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	w := &Window{log: log, From: after, To: after, End: snap.Seq()}
	if after > w.End {
		return nil, fmt.Errorf("%w: it is behind change %d, and the log ends with %d: the store was put back; %s", ErrCursorExpired, after, w.End, watchAnew)
	}
	changes, err := p.changes(ctx, after, w.End)
	if err != nil {
		return nil, err
	}
	sums := make([]dbadapter.Checksum, len(changes))
	indices := make([]dbadapter.Index, len(changes))
	for i := range changes {
		indices[i] = changes[i].Index
	}
	if err := snap.Lookup(indices, sums); err != nil {
		return nil, err
	}
	for i := range changes {
		if w.Bytes > windowBytes {
			break
		}
		if err := w.add(p.Keys.Hasher, snap, &changes[i], sums[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watchAnew is what to do about a cursor that has expired.
const watchAnew = `watch from "start", which tells all that is held first`

// changes reads a piece of the log, up to a sequence number.
func (p *Part) changes(ctx context.Context, after, end uint64) (changes []dbadapter.Change, err error) {
	if after == end {
		return nil, nil
	}
	size := 0
	for c, err := range p.Store.Changes(ctx, after) {
		switch {
		case errors.Is(err, dbadapter.ErrTrimmed):
			return nil, fmt.Errorf("%w: %w; %s", ErrCursorExpired, err, watchAnew)
		case err != nil:
			return nil, err
		}
		changes = append(changes, c)
		for _, key := range c.Keys {
			size += len(key)
		}
		if c.Seq == end || len(changes) == windowChanges || size > windowBytes {
			break
		}
	}
	return changes, nil
}

// add says what became of the keys of a change; sum is the checksum of its bucket in the
// snapshot.
func (w *Window) add(h dbadapter.Hasher, snap dbadapter.Snapshot, c *dbadapter.Change, sum dbadapter.Checksum) error {
	w.To = c.Seq
	last := sum == c.New // nothing has followed, or what has followed was undone
	// Then c.New stands for the record of this one key.
	alone := len(c.Keys) == 1 && !c.Shared
	var bucket []dbadapter.Hashed
	if sum != 0 {
		var err error
		if bucket, err = snap.Bucket(c.Index); err != nil {
			return err
		}
	}
	for i, key := range c.Keys {
		it := item{seq: c.Seq, key: key}
		at := place{log: w.log, seq: c.Seq}
		if i < len(c.Keys)-1 {
			at.seq-- // or what is behind the cursor would be without the keys that follow
		}
		it.at = at.cursor()
		var own dbadapter.Checksum
		for n := range bucket {
			if r := &bucket[n]; bytes.Equal(r.Key, key) {
				it.held, own = &r.Record, dbadapter.PairOf(h, r).Checksum
			}
		}
		if !last {
			it.passed = alone && own != c.New
			it.early = !alone
		}
		if it.passed {
			it.held = nil
		}
		w.items = append(w.items, it)
		w.Bytes += itemBytes + len(key)
		if it.held != nil {
			w.Bytes += len(it.held.Key) + len(it.held.Value) + len(it.held.Signature)
		}
	}
	return nil
}

// itemBytes is about what an item takes beside the key and the record's bytes.
const itemBytes = 320
