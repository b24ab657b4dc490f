package changes

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Event is what a watch yields: the latest state of a key.
type Event struct {
	// Cursor is that of a watch which goes on behind the event.
	Cursor Cursor
	Kind   Kind
	Key    []byte
	// Record is what the key holds, tombstones included. It is shared, and must not be
	// changed; nil where Kind is Gone, At or Expired.
	Record *dbadapter.Record
	// Coalesced: the watch has passed over changes of the key since its last event of
	// it, or since the watch began. It is also set where the watch does not know.
	Coalesced bool
}

// Kind is what has become of a key.
type Kind uint8

// The kinds.
const (
	// Put: the key holds a record, which may expire, or have expired.
	Put Kind = iota + 1
	// Delete: the key holds a tombstone.
	Delete
	// Gone: the key holds nothing any more: a tombstone or what has expired was
	// collected, or a record was set aside.
	Gone
	// At is of no key: all up to the cursor was yielded.
	At
	// Expired: the record that the watch has yielded has expired, and is still held.
	Expired
)

// Watcher is one watch of a set: where it is, and what it has to remember. It is
// used by one goroutine. Its memory is bounded, however far it is behind.
type Watcher struct {
	source  *Source
	prefix  []byte
	log     dbadapter.LogID
	at      uint64 // all changes up to it are yielded or passed over
	listing *listing
	all     bool // of what is held, tombstones and what has expired are listed, too
	// pending are the keys of which a change was passed over, and the next one is
	// still ahead. Up to the change unsure, so many were that they are not
	// remembered.
	pending memory
	unsure  uint64
	// asOf is as of which change a key was yielded early.
	asOf memory
	// expire: due and expired are asked, which yield expiries. As far as there is room,
	// expiries has those of the records that were yielded. None of them is before next.
	expire   bool
	expiries memory
	next     dbadapter.Timestamp // 0: nothing that is held will expire
}

// Cursor is that of a watch of all that follows now.
func (s *Source) Cursor() Cursor { return s.fromNow().Cursor() }

// fromNow begins a watch of all keys.
func (s *Source) fromNow() *Watcher { return &Watcher{source: s, log: s.Store.Log(), at: s.end()} }

// Watcher begins a watch of the keys with a prefix behind a cursor. The error is that of
// Cursor.Check.
func (s *Source) Watcher(cursor Cursor, prefix []byte) (*Watcher, error) {
	at, err := cursor.read()
	if err != nil {
		return nil, err
	}
	w := s.fromNow()
	w.prefix = bytes.Clone(prefix)
	if at.log != 0 {
		w.log, w.at = at.log, at.seq
	}
	if at.listed != nil {
		w.listing = &listing{}
		if len(at.listed) > 0 {
			w.listing.after = at.listed
			w.listing.until(at.listed, w.at)
		}
	}
	return w, nil
}

// ListAll makes the watch list tombstones and what has expired, too.
func (w *Watcher) ListAll() { w.all = true }

// Cursor is that of a watch that goes on behind all that was yielded.
func (w *Watcher) Cursor() Cursor {
	at := place{log: w.log, seq: w.at}
	if w.Listing() {
		at.listed = w.listing.after
		if len(at.listed) == 0 {
			return FromStart
		}
	}
	return at.cursor()
}

// read reads a window of the log behind the watcher's place.
func (w *Watcher) read(ctx context.Context) (*window, error) {
	return w.source.readFrom(ctx, w.log, w.at)
}

// Next appends what follows: some of what is held, or what a piece of the log has to
// yield. It was read as of the change end. Nothing has followed where the cursor stays.
func (w *Watcher) Next(ctx context.Context, events []Event) (_ []Event, end uint64, err error) {
	if w.Listing() {
		return w.list(ctx, events)
	}
	win, err := w.read(ctx)
	if err != nil {
		return events, 0, err
	}
	return w.take(win, events), win.end, nil
}

// has reports whether a window that another watcher has read goes on where this one is.
func (w *Watcher) has(win *window) bool {
	return win.log == w.log && win.from <= w.at && w.at < win.to
}

// skip goes on behind a window of which the watcher need yield nothing.
func (w *Watcher) skip(win *window) { w.at = win.to }

// take appends the events of a window that goes on where the watcher is, and goes on
// behind it.
func (w *Watcher) take(win *window, events []Event) []Event {
	for i := range win.items {
		it := &win.items[i]
		if it.seq <= w.at || !bytes.HasPrefix(it.key, w.prefix) || w.source.Reserved(it.key) || w.knows(it) {
			continue
		}
		if it.passed {
			w.pass(it, win.end)
			continue
		}
		e := Event{Cursor: it.at, Key: it.key, Kind: Gone, Record: it.held, Coalesced: it.early || it.seq <= w.unsure}
		if w.pending.forget(it.key) {
			e.Coalesced = true
		}
		if it.early {
			w.asOf.note(it.key, win.end, w.at) // beyond the bound, it is yielded again
		}
		switch {
		case it.held != nil && it.held.Deleted:
			e.Kind = Delete
		case it.held != nil:
			e.Kind = Put
		}
		w.expects(&e)
		events = append(events, e)
	}
	w.at = win.to
	if w.at >= w.pending.latest {
		w.pending = memory{}
	}
	if w.at >= w.asOf.latest {
		w.asOf = memory{}
	}
	if w.listing != nil && w.at >= w.listing.latest {
		w.listing = nil
	}
	return events
}

// expects notes when the record of an event expires.
func (w *Watcher) expects(e *Event) {
	w.expiries.forget(e.Key)
	if !w.expire || e.Kind != Put || e.Record.Expires == 0 || !w.expiries.note(e.Key, uint64(e.Record.Expires), 0) {
		return
	}
	if w.next == 0 || e.Record.Expires < w.next {
		w.next = e.Record.Expires
	}
}

// due is how long it takes until expired has an event; ok is false where there is nothing
// to wait for.
func (w *Watcher) due() (in time.Duration, ok bool) {
	return w.next.Time().Sub(w.source.Now()), w.next != 0
}

// expired appends what has expired by now of what was yielded, by key. It is asked when
// all changes are yielded: what is held then is what has expired.
func (w *Watcher) expired(events []Event) []Event {
	if in, ok := w.due(); !ok || in > 0 {
		return events
	}
	w.next = 0
	for _, key := range slices.Sorted(maps.Keys(w.expiries.keys)) {
		at := dbadapter.Timestamp(w.expiries.keys[key])
		switch {
		case !at.Time().After(w.source.Now()):
			w.expiries.forget([]byte(key))
			events = append(events, Event{Cursor: w.Cursor(), Kind: Expired, Key: []byte(key)})
		case w.next == 0 || at < w.next:
			w.next = at
		}
	}
	return events
}

// knows reports whether the key was yielded as of the change of an item, or a later one.
func (w *Watcher) knows(it *item) bool {
	return it.seq <= w.asOf.of(it.key) || w.listing != nil && it.seq <= w.listing.asOf(it.key)
}

// pass notes that a change is passed over.
func (w *Watcher) pass(it *item, end uint64) {
	if !w.pending.note(it.key, end, w.at) {
		w.unsure = max(w.unsure, end)
	}
}

// memory holds a sequence number for each of some keys.
type memory struct {
	keys   map[string]uint64
	bytes  int
	latest uint64 // of the numbers
}

// The bounds of a watcher's memory, some 100 KiB.
const (
	memoryKeys  = 1024
	memoryBytes = 64 << 10
)

func (m *memory) of(key []byte) uint64 { return m.keys[string(key)] }

func (m *memory) forget(key []byte) bool {
	_, ok := m.keys[string(key)]
	if ok {
		delete(m.keys, string(key))
		m.bytes -= len(key)
	}
	return ok
}

// note remembers a number, unless there is no room. Numbers up to at are of no use any
// more.
func (m *memory) note(key []byte, seq, at uint64) bool {
	m.forget(key)
	if len(m.keys) >= memoryKeys || m.bytes+len(key) > memoryBytes {
		for key, seq := range m.keys {
			if seq <= at {
				delete(m.keys, key)
				m.bytes -= len(key)
			}
		}
		if len(m.keys) >= memoryKeys || m.bytes+len(key) > memoryBytes {
			return false
		}
	}
	if m.keys == nil {
		m.keys = map[string]uint64{}
	}
	m.keys[string(key)] = seq
	m.bytes += len(key)
	m.latest = max(m.latest, seq)
	return true
}
