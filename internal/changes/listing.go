package changes

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// listing is how far a watch has listed what is held. Each part of it is read from a
// snapshot of its own, so that a slow watcher holds no snapshot open. So each part shows
// the changes up to another one, and those are not yielded again.
type listing struct {
	after  []byte // the last key that was listed; nil before the first
	done   bool
	parts  []listed // by key, each from behind the one before
	rest   uint64   // the same, of the keys behind all parts; once done
	latest uint64   // of all parts
}

type listed struct {
	to  []byte // the last key
	seq uint64 // the part shows all changes up to it
}

// listingParts bounds the memory of a listing, to 100 KiB for keys of 64 bytes.
const listingParts = 1024

// until ends a part.
func (l *listing) until(key []byte, seq uint64) {
	l.latest = max(l.latest, seq)
	last := len(l.parts) - 1
	if last >= 0 && l.parts[last].seq == seq {
		l.parts[last].to = key
		return
	}
	l.parts = append(l.parts, listed{bytes.Clone(key), seq})
	if len(l.parts) < listingParts {
		return
	}
	// Each two become one, which shows what the older of them does: some changes are
	// then yielded again.
	half := l.parts[:0]
	for i := 1; i < len(l.parts); i += 2 {
		half = append(half, listed{l.parts[i].to, min(l.parts[i-1].seq, l.parts[i].seq)})
	}
	l.parts = half
}

// finish ends the listing.
func (l *listing) finish(seq uint64) {
	l.done, l.rest, l.latest = true, seq, max(l.latest, seq)
}

// asOf is the change up to which the listing has shown a key.
func (l *listing) asOf(key []byte) uint64 {
	at, _ := slices.BinarySearchFunc(l.parts, key, func(p listed, key []byte) int { return bytes.Compare(p.to, key) })
	if at < len(l.parts) {
		return l.parts[at].seq
	}
	return l.rest
}

// Listing reports whether the watch still lists what is held.
func (w *Watcher) Listing() bool { return w.listing != nil && !w.listing.done }

// list appends some of what is held: what reads as there, by key. It ends with an event
// of kind At, behind which the changes since follow. end is the change as of which it was
// read.
func (w *Watcher) list(ctx context.Context, events []Event) (_ []Event, end uint64, err error) {
	snap, err := w.source.Store.Snapshot()
	if err != nil {
		return events, 0, err
	}
	defer snap.Close()
	l := w.listing
	switch log := w.source.Store.Log(); {
	case len(l.parts) == 0:
		w.log, w.at = log, snap.Seq() // what the listing does not show follows it
	case log != w.log || snap.Seq() < w.at:
		return events, 0, fmt.Errorf("%w: the store was restored or repaired since; %s", ErrCursorExpired, watchAnew)
	}
	size := 0
	for r, err := range snap.Scan(ctx, w.prefix, w.source.Behind(l.after)) {
		if err != nil {
			return events, 0, err
		}
		if size > windowBytes {
			l.until(l.after, snap.Seq())
			return events, snap.Seq(), nil
		}
		l.after = r.Key
		size += itemBytes + len(r.Key) + len(r.Value)
		if kind := Put; w.all || !r.Deleted && !r.Expired(w.source.Now()) {
			if r.Deleted {
				kind = Delete
			}
			events = append(events, Event{Cursor: w.Cursor(), Kind: kind, Key: r.Key, Record: &r.Record})
			w.expects(&events[len(events)-1])
		}
	}
	l.finish(snap.Seq())
	return append(events, Event{Cursor: w.Cursor(), Kind: At}), snap.Seq(), nil
}
