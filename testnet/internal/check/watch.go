package check

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// Watching is a watch of a program that begins, or goes on.
type Watching struct {
	Node            int
	Program, Prefix string
	Cursor          string
	// Now: the cursor is that of a watch from now on.
	Now bool
	// Log is the change log of the node, and End its last change.
	Log dbadapter.LogID
	End uint64
}

// Event is what a watch has told.
type Event struct {
	Cursor string
	// At: it tells no more than how far the watch has come.
	At bool
	// Kind is "put", "delete" or "gone".
	Kind, Key string
	Record    *dbadapter.Record
	Coalesced bool
	// Read is the change as of which the node had read it.
	Read uint64
}

// watchOf is a program at a node.
type watchOf struct {
	node    int
	program string
}

// watch is what a program was told, and what its connection has to tell.
type watch struct {
	watchOf
	prefix string
	view   map[string]holding // by what it was told; a key of which it was told nothing is not in it

	// Of the connection.
	log     dbadapter.LogID // 0: of a listing of which nothing was told
	began   uint64
	at      uint64 // all up to it was told
	last    uint64 // the change that was told last
	told    map[string]telling
	listing bool
	listed  []listedPart // of the listing, by key
	key     string       // that was listed last
	shown   map[string]bool

	ofShards
}

// telling is the last one of a key. first is the change that first gave the key what was
// told, and latest the last one that did. Both are as of the change read, up to which the
// node had read.
type telling struct {
	first, latest, read uint64
	what                holding
}

// listedPart shows the keys up to one, as of a change.
type listedPart struct {
	to  string
	all bool // up to the last
	as  uint64
}

// cursorOf reads a cursor: LOG.SEQ, or LOG.SEQ.KEY within a listing.
func cursorOf(text string) (log dbadapter.LogID, seq uint64, key string, err error) {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, 0, "", fmt.Errorf("%q is no cursor", text)
	}
	if log, err = dbadapter.ParseLogID(parts[0]); err != nil {
		return 0, 0, "", err
	}
	if seq, err = strconv.ParseUint(parts[1], 10, 64); err != nil || len(parts) == 2 {
		return log, seq, "", err
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[2])
	return log, seq, string(b), err
}

// fromStart is the cursor of a watch that lists what is held.
const fromStart = "start"

// Watching notes that a program begins to watch, or goes on.
func (h *History) Watching(b *Watching) {
	if h.shards.cut() {
		h.shardsWatching(b)
		return
	}
	id := watchOf{b.Node, b.Program}
	w := h.watches[id]
	if w == nil {
		w = &watch{watchOf: id, view: map[string]holding{}}
		h.watches[id] = w
	}
	*w = watch{watchOf: id, prefix: b.Prefix, view: w.view, told: map[string]telling{}, shown: map[string]bool{}}
	if b.Cursor == fromStart {
		w.view, w.listing = map[string]holding{}, true
		return
	}
	log, seq, key, err := cursorOf(b.Cursor)
	if err != nil {
		h.says(w.watchOf, "", "begins at a cursor that cannot be read: %v", err)
	}
	w.log, w.began, w.at, w.last = log, seq, seq, seq
	if w.listing = key != ""; w.listing {
		w.listed, w.key = []listedPart{{to: key, as: seq}}, key
	}
	if !b.Now {
		return
	}
	if log != b.Log || seq > b.End {
		h.says(w.watchOf, "", "begins now, at change %d, and the log ends with %d", seq, b.End)
	}
	w.view = map[string]holding{}
	l := h.logs[log]
	if l == nil {
		return // the node has never held anything
	}
	for key := range l.of {
		if what := l.at(key, seq); strings.HasPrefix(key, w.prefix) && what.there {
			w.view[key] = what
		}
	}
}

func (h *History) says(w watchOf, key, format string, args ...any) {
	h.found.say(Watch, w.node, key, "its watch %q %s", w.program, fmt.Sprintf(format, args...))
}

// Watched judges an event that a program has taken: the rule watch.
func (h *History) Watched(node int, program string, e *Event) {
	if h.shards.cut() {
		h.shardsWatched(node, program, e)
		return
	}
	w := h.watches[watchOf{node, program}]
	log, seq, listed, err := cursorOf(e.Cursor)
	if err == nil && w.log == 0 {
		w.log, w.began, w.at, w.last = log, seq, seq, seq
	}
	if err != nil || log != w.log {
		h.says(w.watchOf, e.Key, "tells the cursor %q, which is not of its log: %v", e.Cursor, err)
		return
	}
	switch {
	case e.At:
		if listed != "" || seq > w.at {
			h.says(w.watchOf, "", "tells that it has come to change %d, and has told all up to %d", seq, w.at)
		}
		return
	case !strings.HasPrefix(e.Key, w.prefix):
		h.says(w.watchOf, e.Key, "tells of a key without its prefix")
		return
	}
	what := holds(e.Record)
	if kind := kindOfEvent(what); e.Kind != kind {
		h.says(w.watchOf, e.Key, "tells %q of %s", e.Kind, what)
	}
	if listed != "" {
		h.listedEvent(w, e, listed, what)
	} else {
		h.changeEvent(w, e, seq, what)
	}
	w.view[e.Key] = what
}

func kindOfEvent(what holding) string {
	switch {
	case !what.there:
		return "gone"
	case what.deleted:
		return "delete"
	}
	return "put"
}

// listedEvent judges an event of the listing.
func (h *History) listedEvent(w *watch, e *Event, listed string, what holding) {
	l := h.logs[w.log]
	switch {
	case !w.listing, listed != e.Key, e.Key <= w.key && len(w.shown)+len(w.listed) > 0, e.Coalesced:
		h.says(w.watchOf, e.Key, "lists it behind %q, with the cursor of %q, or after the listing", w.key, listed)
	case l == nil || l.at(e.Key, e.Read) != what || what.deleted:
		h.says(w.watchOf, e.Key, "lists it with %s, which it did not hold as of change %d", what, e.Read)
	}
	w.key = e.Key
	w.shown[e.Key] = true
}

// changeEvent judges an event of a change. The cursor leaves open of which of two changes in
// a row it is, where several keys of one index have changed in one commit.
func (h *History) changeEvent(w *watch, e *Event, seq uint64, what holding) {
	l := h.logs[w.log]
	wrong := fmt.Sprintf("tells of it with the cursor of change %d, which is not of this key", seq)
	if l != nil && !w.listing {
		for i, c := range l.changesOf(seq, e.Key) {
			t, why := w.tells(l, e, c, what)
			if why == "" {
				w.told[e.Key], w.last = t, c.Seq
				return
			}
			if i == 0 {
				wrong = why
			}
		}
	}
	h.says(w.watchOf, e.Key, "%s", wrong)
}

// mostPassed is how many keys a watcher remembers to have passed over; beyond that, it marks
// what it tells.
const mostPassed = 1024

// tells says what is wrong with an event of a change; or what has been told with it.
func (w *watch) tells(l *changeLog, e *Event, c *Change, what holding) (t telling, wrong string) {
	before, s := w.told[e.Key], c.Seq
	shown := w.shownAsOf(e.Key)
	t = telling{read: e.Read, what: what}
	for _, k := range l.of[e.Key] {
		if k.seq >= s && k.seq <= e.Read && k.what == what {
			t.first, t.latest = cmp.Or(t.first, k.seq), k.seq
		}
	}
	passed := l.between(e.Key, max(w.began, shown, before.latest), max(t.first, s))
	switch shared := l.shared(c); {
	case s <= w.began || s < w.last:
		return t, fmt.Sprintf("tells of change %d after change %d", s, w.last)
	case s <= shown:
		return t, fmt.Sprintf("tells of change %d, and has listed what it holds since change %d", s, shown)
	case s <= before.first:
		return t, fmt.Sprintf("tells of change %d again: it has told what it holds since change %d", s, before.first)
	case t.first == 0 || t.first > s && !shared:
		return t, fmt.Sprintf("tells of change %d with %s; it held %s then", s, what, l.at(e.Key, s))
	case passed > 1 && !e.Coalesced:
		return t, fmt.Sprintf("tells of change %d, has passed over %d others since it last told of it, and does not mark it", s, passed-1)
	case passed <= 1 && e.Coalesced && !shared && len(l.of) <= mostPassed:
		return t, fmt.Sprintf("tells of change %d as if it had passed over another one", s)
	}
	return t, ""
}

// shownAsOf is the change as of which the listing has shown a key; 0: it has not.
func (w *watch) shownAsOf(key string) uint64 {
	for _, p := range w.listed {
		if p.all || key <= p.to {
			return p.as
		}
	}
	return 0
}

// WatchedAll notes that a program has taken all up to a cursor, which the node had read as
// of a change: the rule watch.
func (h *History) WatchedAll(node int, program, cursor string, read uint64) {
	w := h.watches[watchOf{node, program}]
	log, seq, listed, err := cursorOf(cursor)
	if err == nil && w.log == 0 {
		w.log, w.began, w.at, w.last = log, seq, seq, seq
	}
	if err != nil || log != w.log || seq < w.at {
		h.says(w.watchOf, "", "has come to the cursor %q, behind change %d", cursor, w.at)
		return
	}
	l := h.logs[log]
	switch {
	case l == nil:
		w.listing = w.listing && listed != ""
	case w.listing:
		h.endPart(w, l, listed, read)
	default:
		for ; w.at < seq; w.at++ {
			if w.at < uint64(len(l.changes)) {
				h.passes(w, l, &l.changes[w.at], read)
			}
		}
	}
}

// endPart looks for what a part of the listing has left out. It leaves out what has expired,
// of which this does not judge.
func (h *History) endPart(w *watch, l *changeLog, to string, read uint64) {
	from := ""
	if n := len(w.listed); n > 0 {
		from = w.listed[n-1].to
	}
	for _, key := range slices.Sorted(maps.Keys(l.of)) {
		what := l.at(key, read)
		if !strings.HasPrefix(key, w.prefix) || key <= from && len(w.listed) > 0 || to != "" && key > to || w.shown[key] {
			continue
		}
		if what.there && !what.deleted && !what.expires() {
			h.says(w.watchOf, key, "does not list it, and it holds %s as of change %d", what, read)
		}
	}
	w.listed = append(w.listed, listedPart{to: to, all: to == "", as: read})
	w.listing = to != ""
}

// passes looks whether each key of a change was told of, or will be. The change is passed
// over only where another one of the key follows.
func (h *History) passes(w *watch, l *changeLog, c *Change, read uint64) {
	for i, b := range c.Keys {
		key, t := string(b), w.told[string(b)]
		what := holds(c.Held[i])
		switch {
		case !strings.HasPrefix(key, w.prefix), w.shownAsOf(key) >= c.Seq:
		case t.read >= c.Seq && t.what == what:
		case l.between(key, c.Seq, read) > 0:
		default:
			h.says(w.watchOf, key, "does not tell that it holds %s since change %d", what, c.Seq)
		}
	}
}

// CursorExpired notes that the cursor of a program has expired: the rule watch. log is the
// change log of the node. reaches reports whether it goes back to a change. Over shards it
// reports whether nothing was wrong any more, and a whole host of each has the log of the
// cursor.
func (h *History) CursorExpired(node int, program string, log dbadapter.LogID, reaches func(after uint64) bool) {
	w := h.watches[watchOf{node, program}]
	if h.shards.cut() {
		if reaches(0) {
			h.says(w.watchOf, "", "ends since its cursor %q has expired; whole hosts have the logs", w.cursor)
		}
		return
	}
	if w.log == log && (w.listing || reaches(w.at)) || w.log == 0 {
		h.says(w.watchOf, "", "ends since its cursor has expired; the log goes back to change %d, where it was", w.at)
	}
}

// Behind says what a program has not been told of all that is held; empty: it was told everything. Of keys whose
// values are lost it is not told. The rule watch.
func (h *History) Behind(node int, program string, records []dbadapter.Record, lost map[string]bool) string {
	w, held := h.watches[watchOf{node, program}], map[string]holding{}
	if w == nil {
		return "it has not begun"
	}
	for i := range records {
		if key := string(records[i].Key); strings.HasPrefix(key, w.prefix) {
			what := holds(&records[i])
			if h.shards.writer { // users are given values, and not the bytes of records
				what.content = [32]byte{}
			}
			held[key] = what
		}
	}
	keys := maps.Clone(held)
	maps.Copy(keys, w.view)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		told, was := w.view[key]
		has := held[key]
		first, known := w.base[key]
		switch {
		case told == has, lost[key]:
		case was && !has.there && h.shards.cut() && (told.deleted || told.expires()): // it is collected
		case !was && w.base == nil && (has.deleted || has.expires()): // the listing leaves these out
		case !was && known && !has.beats(first): // it stood when the watch began
		case !was:
			return fmt.Sprintf("it has told nothing of %q, which holds %s", key, has)
		default:
			return fmt.Sprintf("of %q it has told last that it holds %s; it holds %s", key, told, has)
		}
	}
	return ""
}

// forgetLogs forgets the change logs of a node, whose store was put back.
func (h *History) forgetLogs(node int) {
	maps.DeleteFunc(h.logs, func(_ dbadapter.LogID, l *changeLog) bool { return l.node == node })
}

// A watch of a namespace that is cut into shards follows each shard at one host, and goes on at another one
// with repeats. So it is judged by what a program knows in the end, and by the order of what one host tells.

// ofShards is what a watch of shards knows beside what it was told.
type ofShards struct {
	// base is the latest that any node held when a watch of what followed began; nil: it began with what was held.
	base   greatest
	cursor string
	logs   []string  // of each shard, that of which it was told last
	page   []holding // that were told since the cursor changed, with what was told before of their keys
	before []holding
	keys   []string
}

// shardsWatching is Watching.
func (h *History) shardsWatching(b *Watching) {
	id := watchOf{b.Node, b.Program}
	w := h.watches[id]
	if w == nil || b.Now || b.Cursor == fromStart {
		w = &watch{watchOf: id, prefix: b.Prefix, view: map[string]holding{}}
		h.watches[id] = w
	}
	if b.Now {
		w.base = greatest{}
		for _, held := range h.held {
			for key, s := range held {
				w.base.raise(key, s)
			}
		}
	}
	// A page of which a part was told may have been another host's.
	if w.cursor = b.Cursor; len(w.page) > 0 {
		w.logs = nil
	}
	w.page, w.before, w.keys = nil, nil, nil
}

// shardsWatched is Watched.
func (h *History) shardsWatched(node int, program string, e *Event) {
	w := h.watches[watchOf{node, program}]
	if !e.At {
		what := holding{}
		if e.Record != nil {
			what = holding{h.given(e.Record), true}
		}
		if reserved(e.Key) {
			h.found.say(Body, node, e.Key, "its watch %q told of a reserved key", program)
		}
		if !strings.HasPrefix(e.Key, w.prefix) || e.Kind != kindOfEvent(what) {
			h.says(w.watchOf, e.Key, "tells %q of %s, and its prefix is %q", e.Kind, what, w.prefix)
		}
		w.page, w.before, w.keys = append(w.page, what), append(w.before, w.view[e.Key]), append(w.keys, e.Key)
		w.view[e.Key] = what
	}
	if e.Cursor == w.cursor {
		return
	}
	logs := strings.Split(e.Cursor, ",")[1:]
	for i := range logs {
		logs[i], _, _ = strings.Cut(logs[i], ".")
	}
	for i, key := range w.keys {
		home := h.shards.home(key)
		if was, what := w.before[i], w.page[i]; w.logs != nil && w.logs[home] == logs[home] && was.there && what.there && was.beats(what.stamp) {
			h.says(w.watchOf, key, "tells of %s after %s, by the log of one host", what, was)
		}
	}
	w.cursor, w.logs, w.page, w.before, w.keys = e.Cursor, logs, nil, nil, nil
}
