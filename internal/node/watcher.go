package node

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Watched is what a watch tells: the latest state of a key.
type Watched struct {
	// Cursor is that of a watch which goes on behind this.
	Cursor Cursor
	Kind   Kind
	Key    []byte
	// Record is what the key holds, tombstones included. It is shared, and must not be
	// changed; nil where Kind is Gone or At.
	Record *dbadapter.Record
	// Coalesced: the watch has passed over changes of the key since it last told of
	// it, or since it began. It is also set where the watch cannot tell whether it
	// has.
	Coalesced bool
}

// Kind is what a watch tells of a key.
type Kind uint8

// The kinds.
const (
	// PutKind: the key holds a record, which may expire, or have expired.
	PutKind Kind = iota + 1
	// DeleteKind: the key holds a tombstone.
	DeleteKind
	// GoneKind: the key holds nothing any more: a tombstone or what has expired was
	// collected, or a record was set aside.
	GoneKind
	// AtKind is of no key: all up to the cursor has been told.
	AtKind
	// ExpiredKind: the record that the watch has told of has expired, and still stands.
	ExpiredKind
)

// Watcher is one watch of a set: where it is, and what it has to remember. It is
// used by one goroutine. Its memory is bounded, however far it is behind.
type Watcher struct {
	set     *Set
	prefix  []byte
	log     dbadapter.LogID
	at      uint64 // all changes up to it are told or passed over
	listing *listing
	// All: of what is held, tombstones and what has expired are listed, too.
	All bool
	// pending are the keys of which a change was passed over, and the next one is
	// still ahead. Up to the change unsure, so many were that they are not
	// remembered.
	pending memory
	unsure  uint64
	// asOf says as of which change a key was told of early.
	asOf memory
	// Expiries: Due and Expired are asked, which tell of expiries. As far as there
	// is room, expiries has those of the records that were told of. None of them is
	// before next.
	Expiries bool
	expiries memory
	next     dbadapter.Timestamp // 0: there is none
}

// NewWatcher begins a watch of the keys with a prefix behind a cursor.
func (set *Set) NewWatcher(cursor Cursor, prefix []byte) (*Watcher, error) {
	at, err := cursor.read()
	if err != nil {
		return nil, err
	}
	w := &Watcher{set: set, prefix: bytes.Clone(prefix), log: at.log, at: at.seq}
	if at.log == 0 {
		w.log = set.Store.Log()
		_, _, w.at = set.Live.State()
	}
	if at.listed != nil {
		w.listing = &listing{after: at.listed}
		if len(at.listed) > 0 {
			w.listing.until(at.listed, w.at)
		}
	}
	return w, nil
}

// Cursor is that of a watch that goes on behind all that was told.
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

// At is the change up to which all is told.
func (w *Watcher) At() uint64 { return w.at }

// Read reads a window of the log behind the watcher's place.
func (w *Watcher) Read(ctx context.Context) (*Window, error) {
	return w.set.window(ctx, w.log, w.at)
}

// Has reports whether a window that another watcher has read goes on where this one is.
func (w *Watcher) Has(win *Window) bool {
	return win.log == w.log && win.From <= w.at && w.at < win.To
}

// Skip goes on behind a window of which the watcher need not be told.
func (w *Watcher) Skip(win *Window) { w.at = win.To }

// Take appends what a window has to tell, which Has, and goes on behind it.
func (w *Watcher) Take(win *Window, told []Watched) []Watched {
	for i := range win.items {
		it := &win.items[i]
		if it.seq <= w.at || !bytes.HasPrefix(it.key, w.prefix) || w.set.ns.reserved(it.key) || w.knows(it) {
			continue
		}
		if it.passed {
			w.pass(it, win.End)
			continue
		}
		e := Watched{Cursor: it.at, Key: it.key, Kind: GoneKind, Record: it.held, Coalesced: it.early || it.seq <= w.unsure}
		if w.pending.forget(it.key) {
			e.Coalesced = true
		}
		if it.early {
			w.asOf.note(it.key, win.End, w.at) // beyond the bound, it is told again
		}
		switch {
		case it.held != nil && it.held.Deleted:
			e.Kind = DeleteKind
		case it.held != nil:
			e.Kind = PutKind
		}
		w.expects(&e)
		told = append(told, e)
	}
	w.at = win.To
	if w.at >= w.pending.latest {
		w.pending = memory{}
	}
	if w.at >= w.asOf.latest {
		w.asOf = memory{}
	}
	if w.listing != nil && w.at >= w.listing.latest {
		w.listing = nil
	}
	return told
}

// expects notes when what is told of a key expires.
func (w *Watcher) expects(e *Watched) {
	w.expiries.forget(e.Key)
	if !w.Expiries || e.Kind != PutKind || e.Record.Expires == 0 || !w.expiries.note(e.Key, uint64(e.Record.Expires), 0) {
		return
	}
	if w.next == 0 || e.Record.Expires < w.next {
		w.next = e.Record.Expires
	}
}

// Due is how long it takes until Expired has something to tell; ok is false where there is
// nothing to wait for.
func (w *Watcher) Due() (in time.Duration, ok bool) {
	return w.next.Time().Sub(w.set.ns.node.Now()), w.next != 0
}

// Expired appends what has expired by now of what was told, by key. It is asked when all
// changes are told: what stands then is what has expired.
func (w *Watcher) Expired(told []Watched) []Watched {
	if in, ok := w.Due(); !ok || in > 0 {
		return told
	}
	w.next = 0
	for _, key := range slices.Sorted(maps.Keys(w.expiries.keys)) {
		at := dbadapter.Timestamp(w.expiries.keys[key])
		switch {
		case !at.Time().After(w.set.ns.node.Now()):
			w.expiries.forget([]byte(key))
			told = append(told, Watched{Cursor: w.Cursor(), Kind: ExpiredKind, Key: []byte(key)})
		case w.next == 0 || at < w.next:
			w.next = at
		}
	}
	return told
}

// knows reports whether the key was told of as of the change of an item, or a later one.
func (w *Watcher) knows(it *item) bool {
	return it.seq <= w.asOf.of(it.key) || w.listing != nil && it.seq <= w.listing.asOf(it.key)
}

// pass notes that a change is not told.
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

// Listing reports whether the watch still tells what is held.
func (w *Watcher) Listing() bool { return w.listing != nil && !w.listing.done }

// List appends some of what is held: what reads as there, by key. It ends with an event
// of AtKind, behind which the changes since follow.
func (w *Watcher) List(ctx context.Context, told []Watched) ([]Watched, error) {
	snap, err := w.set.Store.Snapshot()
	if err != nil {
		return told, err
	}
	defer snap.Close()
	l := w.listing
	switch log := w.set.Store.Log(); {
	case len(l.parts) == 0:
		w.log, w.at = log, snap.Seq() // what the listing does not show follows it
	case log != w.log || snap.Seq() < w.at:
		return told, fmt.Errorf("%w: the store was restored or repaired since; %s", ErrCursorExpired, watchAnew)
	}
	bytes := 0
	for r, err := range snap.Scan(ctx, w.prefix, w.set.ns.BehindReserved(l.from())) {
		if err != nil {
			return told, err
		}
		if bytes > windowBytes {
			l.until(l.after, snap.Seq())
			return told, nil
		}
		l.after = r.Key
		bytes += itemBytes + len(r.Key) + len(r.Value)
		if kind := PutKind; w.All || w.set.Present(&r.Record) {
			if r.Deleted {
				kind = DeleteKind
			}
			told = append(told, Watched{Cursor: w.Cursor(), Kind: kind, Key: r.Key, Record: &r.Record})
			w.expects(&told[len(told)-1])
		}
	}
	l.finish(snap.Seq())
	return append(told, Watched{Cursor: w.Cursor(), Kind: AtKind}), nil
}
