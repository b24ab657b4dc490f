package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// A window takes no further change beyond these bounds on its changes, and on the bytes of
// keys and records in it. So a watcher that is far behind takes little memory.
const (
	windowChanges = 256
	windowBytes   = 128 << 10
)

// window is a piece of the change log, with what its keys hold in a snapshot. Watchers
// share it: it must not be changed.
type window struct {
	log dbadapter.LogID
	// from and to: the changes behind from up to to. end is the sequence number of the
	// snapshot: where it is to, no change follows yet.
	from, to, end uint64
	// bytes is about what the window takes in memory.
	bytes int
	items []item
}

// item is one key of one change.
type item struct {
	seq  uint64
	at   Cursor // behind the item
	key  []byte
	held *dbadapter.Record // as of window.end; nil: the key holds no record
	// passed: another change of the key follows, up to window.end.
	passed bool
	// early: the record that is held may be that of another change of the key which
	// follows, up to window.end. Keys that share an index cannot be told apart.
	early bool
}

// Source is the set that is watched.
type Source struct {
	Store  dbadapter.Namespace
	Hasher dbadapter.Hasher // of the store's keys
	Live   *replica.Live    // knows the last change
	Now    func() time.Time // by which records expire
	// Reserved reports whether a key is the node's own: no watch yields it. Behind is where
	// a scan of the other keys behind a key begins.
	Reserved func(key []byte) bool
	Behind   func(key []byte) []byte
}

// end is the last change.
func (s *Source) end() uint64 {
	_, _, seq := s.Live.State()
	return seq
}

// readFrom reads the change log behind a place.
func (s *Source) readFrom(ctx context.Context, log dbadapter.LogID, after uint64) (w *window, err error) {
	if s.Store.Log() == log {
		w, err = s.readWindow(ctx, log, after)
	}
	if s.Store.Log() != log { // perhaps since we looked: the snapshot can be of either log
		return nil, fmt.Errorf("%w: it is of another log than that of the store, which was restored or repaired since; %s", ErrCursorExpired, watchAnew)
	}
	return w, err
}

func (s *Source) readWindow(ctx context.Context, log dbadapter.LogID, after uint64) (*window, error) {
	snap, err := s.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	w := &window{log: log, from: after, to: after, end: snap.Seq()}
	if after > w.end {
		return nil, fmt.Errorf("%w: it is behind change %d, and the log ends with %d: the store was put back; %s", ErrCursorExpired, after, w.end, watchAnew)
	}
	changes, err := s.changes(ctx, after, w.end)
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
		if w.bytes > windowBytes {
			break
		}
		if err := w.add(s.Hasher, snap, &changes[i], sums[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watchAnew is what to do about a cursor that has expired.
const watchAnew = `watch from "start", which tells all that is held first`

// changes reads a piece of the log, up to a sequence number.
func (s *Source) changes(ctx context.Context, after, end uint64) (changes []dbadapter.Change, err error) {
	if after == end {
		return nil, nil
	}
	size := 0
	for c, err := range s.Store.Changes(ctx, after) {
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

// add adds what became of the keys of a change. sum is the checksum of its bucket in the
// snapshot.
func (w *window) add(h dbadapter.Hasher, snap dbadapter.Snapshot, c *dbadapter.Change, sum dbadapter.Checksum) error {
	w.to = c.Seq
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
		w.bytes += itemBytes + len(key)
		if it.held != nil {
			w.bytes += len(it.held.Key) + len(it.held.Value) + len(it.held.Signature)
		}
	}
	return nil
}

// itemBytes is about what an item takes in memory without its key and record.
const itemBytes = 320
