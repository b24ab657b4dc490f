package changes

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
)

// program is a program that watches, in one connection after another.
type program struct {
	*watchedStore
	name   string
	prefix string
	cursor Cursor // of the last event that it was told
	model  map[string]string

	// Of the connection.
	w     *Watcher
	began uint64
	parts []listed // of the listing: each shows the keys up to one as of a change
	told  map[string]tellings
	last  uint64
}

// tellings is what was told of a key last.
type tellings struct {
	seq   uint64
	state string
}

func (r *program) connect() {
	w, err := r.source.Watcher(r.cursor, []byte(r.prefix))
	if err != nil {
		r.t.Fatal(err)
	}
	r.w, r.parts, r.told, r.last = w, nil, map[string]tellings{}, 0
	r.began = w.at
	if w.Listing() && len(w.listing.after) > 0 {
		r.parts = []listed{{w.listing.after, w.at}}
	}
	if r.cursor == "" {
		r.cursor = w.Cursor()
	}
	if r.cursor == FromStart {
		r.model = map[string]string{}
	}
}

// step takes one window, or lists some of what is held.
func (r *program) step() {
	if r.w == nil {
		r.connect()
	}
	if r.w.Listing() {
		r.list()
		return
	}
	for _, win := range r.hub {
		if r.w.has(win) && r.random.IntN(4) > 0 {
			r.take(win)
			return
		}
	}
	at := r.w.at
	win, err := r.w.read(r.t.Context())
	covered := r.covers(at)
	if errors.Is(err, ErrCursorExpired) {
		if covered {
			r.t.Fatalf("%s: the cursor of change %d has expired, and the log goes back to it: %v", r.name, at, err)
		}
		r.cursor, r.w = FromStart, nil
		return
	}
	if err != nil || !covered {
		r.t.Fatalf("%s: the log after %d is not there, and reading it gives %v", r.name, at, err)
	}
	r.take(win)
}

// covers reports whether the log of the store is that of the connection and reaches back
// to a change.
func (r *program) covers(at uint64) bool {
	if r.w.log != r.source.Store.Log() || at > uint64(len(r.changes)) {
		return false
	}
	for _, err := range r.source.Store.Changes(r.t.Context(), at) {
		return err == nil
	}
	return true
}

func (r *program) list() {
	known := r.w.listing.parts != nil && len(r.w.listing.after) > 0
	told, seq, err := r.w.list(r.t.Context(), nil)
	if errors.Is(err, ErrCursorExpired) {
		if r.w.log == r.source.Store.Log() {
			r.t.Fatalf("%s: %v", r.name, err)
		}
		r.cursor, r.w = FromStart, nil
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if !known {
		r.began = r.w.at
	}
	for _, e := range told {
		r.cursor = e.Cursor
		if e.Kind == At {
			continue
		}
		r.model[string(e.Key)] = stateOf(e.Record)
	}
	r.parts = append(r.parts, listed{r.w.listing.after, seq})
	if !r.w.Listing() {
		r.parts[len(r.parts)-1].to = []byte("~") // behind all keys
	}
}

// listedAsOf is the change as of which the listing has shown a key.
func (r *program) listedAsOf(key []byte) uint64 {
	for _, p := range r.parts {
		if bytes.Compare(key, p.to) <= 0 {
			return p.seq
		}
	}
	return 0
}

func (r *program) take(win *window) {
	for _, e := range r.w.take(win, nil) {
		r.check(win, &e)
		r.model[string(e.Key)] = stateOf(e.Record)
		if r.random.IntN(40) == 0 { // it ends in the midst of a window
			r.cursor, r.w = e.Cursor, nil
			return
		}
		r.cursor = e.Cursor
	}
}

// check compares an event with the history.
func (r *program) check(win *window, e *Event) {
	fail := func(format string, args ...any) {
		r.t.Helper()
		for i, after := range r.after {
			if state, ok := after[string(e.Key)]; ok {
				r.t.Logf("change %d of the key: %s", i+1, state)
			}
		}
		r.t.Logf("the connection began at %d; changes %d to %d are read, as of %d", r.began, win.from+1, win.to, win.end)
		r.t.Fatalf("%s: %s: %+v, record %v", r.name, fmt.Sprintf(format, args...), e, stateOf(e.Record))
	}
	key := string(e.Key)
	// Two items of one key in a row can have one cursor, and nothing held: the later one is
	// meant where the first was passed over, or the listing has shown it.
	n := -1
	for i, it := range win.items {
		if !it.passed && it.at == e.Cursor && bytes.Equal(it.key, e.Key) && it.held == e.Record && it.seq >= r.last && it.seq > r.told[key].seq {
			if n = i; it.seq > r.listedAsOf(e.Key) {
				break
			}
		}
	}
	if n < 0 {
		fail("the window has nothing of it that was not told")
	}
	it := win.items[n]
	p, err := e.Cursor.read()
	if err != nil || p.log != r.source.Store.Log() || p.seq != it.seq && p.seq != it.seq-1 {
		fail("the cursor is wrong: %v", err)
	}
	before := r.told[key]
	switch {
	case it.seq <= r.listedAsOf(e.Key):
		fail("the listing has shown it")
	case it.seq <= r.began || it.seq < r.last:
		fail("it is of change %d, the connection began at %d and has told of %d", it.seq, r.began, r.last)
	case it.seq <= before.seq:
		fail("it is of change %d, and %d was told", it.seq, before.seq)
	case len(key) < len(r.prefix) || key[:len(r.prefix)] != r.prefix:
		fail("the key is not watched")
	}
	r.last = it.seq
	state := stateOf(e.Record)
	if (e.Kind == Gone) != (state == goneState) || e.Record != nil && (e.Kind == Delete) != e.Record.Deleted {
		fail("the kind is wrong")
	}
	// The changes of the key that this connection has not told of.
	passed, at := 0, ""
	for i := max(r.began, before.seq, r.listedAsOf(e.Key)); i < it.seq; i++ {
		if after, ok := r.after[i][key]; ok {
			passed, at = passed+1, after
		}
	}
	if at == "" {
		fail("the key has not changed")
	}
	if e.Coalesced != (passed > 1) && (passed > 1 || !r.shared[key]) {
		fail("Coalesced is wrong: %d changes since change %d", passed, before.seq)
	}
	if at != state {
		found := false
		for i := it.seq; i < win.end; i++ {
			found = found || r.after[i][key] == state
		}
		// A checksum has 22 bits of a hash. So once in four million changes the bucket's
		// later state looks like that of the change, and the watch yields it twice.
		sum, now := r.changes[it.seq-1], r.changes[it.seq-1]
		for _, c := range r.changes[it.seq:win.end] {
			if c.Index == sum.Index {
				now = c
			}
		}
		if found && now.Seq != sum.Seq && now.New == sum.New {
			r.t.Skip("two states of a bucket have the same checksum")
		}
		if !found || !r.shared[key] || !e.Coalesced {
			fail("it held %q", at)
		}
	}
	if state == before.state && (!e.Coalesced || passed < 2 && !it.early) {
		fail("it was told twice")
	}
	r.told[key] = tellings{it.seq, state}
	if it.early {
		r.told[key] = tellings{win.end, state}
	}
}

// catchUp brings the reader to the end, where its model is what is held.
func (r *program) catchUp() {
	for {
		r.step()
		if r.w != nil && !r.w.Listing() && r.w.at == r.source.end() {
			break
		}
	}
	snap := r.snapshot()
	defer snap.Close()
	for key, state := range r.model {
		if held := r.held(snap, key); held != state {
			r.t.Fatalf("%s: %s holds %q, and it was told last of %q", r.name, key, held, state)
		}
	}
	for rec, err := range snap.Scan(context.Background(), []byte(r.prefix), nil) {
		if err != nil {
			r.t.Fatal(err)
		}
		if _, ok := r.model[string(rec.Key)]; !ok && !rec.Deleted && r.name != "from now" {
			r.t.Fatalf("%s: it was never told of %s", r.name, rec.Key)
		}
	}
}

// Readers watch a store that others write to, each at its own pace, with breaks: they are
// told each key's last state, in the order of the changes, and of no change twice.
func TestWatchers(t *testing.T) {
	seed := *watcherSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for round := range uint64(*watcherRounds) {
		if !t.Run(fmt.Sprintf("watcher.seed %d", seed+round), func(t *testing.T) { watchRandomly(t, seed+round) }) {
			return
		}
	}
}

var (
	watcherRounds = flag.Int("watcher.rounds", 150, "how many stores TestWatchers watches")
	watcherSeed   = flag.Uint64("watcher.seed", 0, "with which TestWatchers begins; 0: any")
)

func watchRandomly(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := newWatchedStore(t, random)
	for range random.IntN(30) {
		s.write()
	}
	readers := []*program{
		{name: "from start", cursor: FromStart}, {name: "with a prefix", cursor: FromStart, prefix: "a"}, {name: "from now"}, {name: "slow", cursor: FromStart},
	}
	for _, r := range readers {
		r.watchedStore, r.model = s, map[string]string{}
		r.connect()
	}
	for range 200 + random.IntN(200) {
		switch pick := random.IntN(100); {
		case pick < 45:
			s.write()
		case pick < 55:
			s.share()
		case pick < 57:
			readers[random.IntN(len(readers))].w = nil
		case pick == 57:
			s.open()
			for _, r := range readers {
				r.w = nil
			}
		case pick == 58 && random.IntN(4) == 0:
			s.restore()
		default:
			if r := readers[random.IntN(len(readers))]; r.name != "slow" || random.IntN(8) == 0 {
				r.step()
			}
		}
	}
	for _, r := range readers {
		r.catchUp()
	}
}

// A watcher yields an expiry once, when it is due, of what it has yielded and is still held.
func TestWatcherYieldsExpiries(t *testing.T) {
	s := newWatchedStore(t, rand.New(rand.NewPCG(1, 1)))
	s.limit = 60
	s.restore()
	write := func(key string, ttl time.Duration) {
		s.clock += 1 << 20
		r := dbadapter.Record{Key: []byte(key), Version: dbadapter.Version{Clock: s.clock, Writer: 1, Incarnation: 1}}
		if ttl > 0 {
			r.Expires = dbadapter.TimestampAt(s.now.Add(ttl))
		}
		must(s.source.Store.Apply(t.Context(), []dbadapter.Write{{Record: s.hash(r)}}))
	}
	write("listed", time.Minute)
	w := must(s.source.Watcher(FromStart, nil))
	w.expire = true
	events, _, err := w.list(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	write("overwritten", time.Minute)
	write("ever", 0)
	write("later", time.Hour)
	write("logged", time.Minute)
	read := func() { events = w.take(must(w.read(t.Context())), events) }
	read()
	write("overwritten", 0)
	read()
	for _, step := range []struct {
		at   time.Duration
		want string
	}{{0, ""}, {time.Minute - time.Millisecond, ""}, {time.Minute + time.Second, "listed logged"}, {time.Minute + 2*time.Second, ""}, {2 * time.Hour, "later"}, {9 * time.Hour, ""}} {
		began := s.now
		s.now = began.Add(step.at)
		var got []string
		for _, e := range w.expired(nil) {
			if e.Kind != Expired || e.Cursor != w.Cursor() {
				t.Errorf("it yields %+v", e)
			}
			got = append(got, string(e.Key))
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %s: %q; want %q", step.at, got, step.want)
		}
		if in, ok := w.due(); ok && in <= 0 {
			t.Errorf("after %s: due %s ago", step.at, -in)
		}
		if step.want != "later" {
			s.now = began
		}
	}
	if _, ok := w.due(); ok || len(events) != 7 {
		t.Errorf("something is due still; %d events were yielded", len(events))
	}
}

// A watcher that is far behind remembers a bounded number of keys: it marks more than it
// must, and is told of each all the same.
func TestWatcherFarBehind(t *testing.T) {
	s := newWatchedStore(t, rand.New(rand.NewPCG(1, 1)))
	s.db, s.limit = memdb.New(memdb.Options{}), 1<<16
	s.keys = reconcile.DeriveKeys(dbadapter.Secret{1}, []byte("creator"))
	s.source.Hasher = s.keys.Hasher
	s.open()
	w := must(s.source.Watcher("", nil))
	const keys = 3 * memoryKeys
	for round := range 2 {
		var writes []dbadapter.Write
		for i := range keys {
			s.clock += 1 << 20
			r := dbadapter.Record{Key: fmt.Append(nil, i), Value: fmt.Append(nil, round), Version: dbadapter.Version{Clock: s.clock, Writer: 1, Incarnation: 1}}
			writes = append(writes, dbadapter.Write{Record: s.hash(r)})
		}
		if _, err := s.source.Store.Apply(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	told := map[string]bool{}
	for w.at < 2*keys {
		win := must(w.read(t.Context()))
		if n := win.to - win.from; n == 0 || n > windowChanges {
			t.Fatalf("a window of %d changes", n)
		}
		for _, e := range w.take(win, nil) {
			if told[string(e.Key)] || !e.Coalesced || string(e.Record.Value) != "1" {
				t.Fatalf("%s: %+v, told before: %v", e.Key, e, told[string(e.Key)])
			}
			told[string(e.Key)] = true
		}
		if n := len(w.pending.keys); n > memoryKeys {
			t.Fatalf("%d keys are remembered", n)
		}
	}
	if len(told) != keys || w.pending.keys != nil {
		t.Errorf("%d keys of %d are told, and %d are remembered", len(told), keys, len(w.pending.keys))
	}
}

// Cursors have one form, and no text makes more of them.
func FuzzCursor(f *testing.F) {
	for _, p := range []place{{log: 1}, {log: 1 << 63, seq: 1<<64 - 1}, {log: 5, seq: 7, listed: []byte("key\xff")}} {
		f.Add(string(p.cursor()))
	}
	f.Add("start")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Cursor(text).read()
		if err != nil {
			return
		}
		if p.log != 0 && p.cursor() != Cursor(text) || p.log == 0 && text != "" && text != "start" {
			t.Errorf("%q is read as %+v", text, p)
		}
	})
}
