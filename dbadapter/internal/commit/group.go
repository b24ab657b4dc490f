package commit

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Load reads what the store holds under each of the indices. These come sorted and each
// but once, so that a store can read them together.
type Load func([]dbadapter.Index) []Loaded

// Loaded is the records under one index, by key, or why they cannot be read.
type Loaded struct {
	Held []Held
	Err  error
}

// Group decides the batches of one transaction of one namespace.
type Group struct {
	hasher  dbadapter.Hasher
	load    Load
	buckets map[dbadapter.Index]*Bucket
	// touched are the buckets that some batch changed, in the order of their
	// first change; a batch that is taken back leaves no bucket behind.
	touched []*Bucket
	// loaded are the buckets of the last batch that loaded some, by index, and loads is
	// how many such batches there were.
	loaded  []placed
	loads   int
	leavers []Leaver
	latest  dbadapter.Timestamp
	slots   []Held // memory for the records of buckets
	sum     dbadapter.Bucket
}

// NewGroup starts a group against the state that load reads.
func NewGroup(h dbadapter.Hasher, load Load) *Group {
	return &Group{hasher: h, load: load}
}

// undo is what a bucket was before a write of the running batch.
type undo struct {
	bucket  *Bucket
	held    []Held
	touched bool
}

// mark is the state of a group before a batch.
type mark struct {
	undos   []undo
	touched int
	leavers int
	latest  dbadapter.Timestamp
}

// takeBack takes the running batch back.
func (g *Group) takeBack(m *mark) {
	for _, u := range slices.Backward(m.undos) {
		u.bucket.Held, u.bucket.touched = u.held, u.touched
	}
	g.touched, g.leavers, g.latest = g.touched[:m.touched], g.leavers[:m.leavers], m.latest
}

// Batch decides the writes of one caller in their order; a later write sees the earlier
// ones. A failed condition takes the whole batch back, and so does a write that must be
// done and is left out. An error of the store does so, too; its outcomes are nil.
func (g *Group) Batch(items []Item) ([]dbadapter.Outcome, error) {
	m := mark{touched: len(g.touched), leavers: len(g.leavers), latest: g.latest}
	outcomes := make([]dbadapter.Outcome, len(items))
	stopped := -1 // by the first such write
	buckets := g.read(items)
	m.undos = make([]undo, 0, len(items))
	if cap(g.slots)-len(g.slots) < len(items) {
		g.slots = make([]Held, 0, len(items))
	}
	for i, b := range buckets {
		if b.err != nil {
			g.takeBack(&m)
			return nil, b.err
		}
		outcomes[i].Result = g.write(b, &items[i], &m)
		if stopped < 0 && stops(&items[i], outcomes[i].Result) {
			stopped = i
		}
	}
	var err error
	if stopped >= 0 {
		g.takeBack(&m)
		err = fmt.Errorf("apply write %d of %d: %w", stopped+1, len(items), whyStopped(outcomes[stopped].Result))
		for i := range outcomes {
			if !stops(&items[i], outcomes[i].Result) {
				outcomes[i].Result = dbadapter.Skipped
			}
		}
	}
	for i, b := range buckets {
		if at, ok := find(b.Held, items[i].Record.Key); ok {
			outcomes[i].Held = b.Held[at].Record.Version
		}
	}
	return outcomes, err
}

// stops reports whether the outcome of a write takes the whole batch back.
func stops(it *Item, r dbadapter.Result) bool {
	return r == dbadapter.Conflict || it.Must && (r == dbadapter.Full || r == dbadapter.Dominated)
}

func whyStopped(r dbadapter.Result) error {
	switch r {
	case dbadapter.Full:
		return fmt.Errorf("%w: its index is full", dbadapter.ErrLimit)
	case dbadapter.Dominated:
		return fmt.Errorf("%w: a greater record is held", dbadapter.ErrConflict)
	}
	return fmt.Errorf("%w since it was read; read the record again and decide anew", dbadapter.ErrConflict)
}

// write decides one write, and puts its record into the bucket if it wins, or
// removes it.
func (g *Group) write(b *Bucket, it *Item, m *mark) dbadapter.Result {
	at, ok := find(b.Held, it.Record.Key)
	var held *Held
	if ok {
		held = &b.Held[at]
	}
	result := decide(it, held)
	if result == dbadapter.Applied && !it.Action.Removes() && full(b.Held, held, &it.Record) {
		return dbadapter.Full
	}
	if result != dbadapter.Applied {
		return result
	}
	m.undos = append(m.undos, undo{b, b.Held, b.touched})
	if !b.touched {
		b.at = len(g.touched)
		g.touched = append(g.touched, b)
		b.touched = true
	}
	if it.Action.Removes() {
		if it.Action == dbadapter.SetAside {
			g.leavers = append(g.leavers, Leaver{Why: dbadapter.KeptSetAside, Record: held.Record})
		}
		b.remove(at)
		return result
	}
	if held != nil && loses(it, &held.Record.Record) {
		g.leavers = append(g.leavers, Leaver{Why: dbadapter.KeptConflict, Record: held.Record, By: it.Record.Version})
	}
	b.put(g.slot(len(b.Held)+1), at, ok, it)
	g.latest = max(g.latest, it.Record.Version.Clock)
	return result
}

// full reports whether a bucket has no room for a record, in place of the one held.
func full(bucket []Held, held *Held, r *dbadapter.Hashed) bool {
	if held == nil && len(bucket) >= dbadapter.MaxBucketKeys {
		return true
	}
	if r.Deleted || held != nil && !held.Record.Deleted || len(bucket) < dbadapter.MaxBucket {
		return false
	}
	alive := 0
	for i := range bucket {
		if !bucket[i].Record.Deleted {
			alive++
		}
	}
	return alive >= dbadapter.MaxBucket
}

// decide says what one write does to the record held, nil if the key is free.
func decide(it *Item, held *Held) dbadapter.Result {
	if it.If != nil {
		var version dbadapter.Version
		if held != nil {
			version = held.Record.Version
		}
		// A record held with the zero version is not "no record".
		if version != *it.If || held != nil && it.If.IsZero() {
			return dbadapter.Conflict
		}
	}
	if it.Action.Removes() {
		switch {
		case held == nil:
			return dbadapter.Same
		case held.Record.Digest != it.Record.Digest:
			return dbadapter.Dominated
		}
		return dbadapter.Applied
	}
	if held == nil {
		return dbadapter.Applied
	}
	switch c := it.Record.Compare(&held.Record.Record); {
	case c == 0:
		return dbadapter.Same
	case c > 0 || it.Action == dbadapter.Replace:
		return dbadapter.Applied
	}
	return dbadapter.Dominated
}

// loses reports whether a write loses something by the record whose place it takes.
// Its writer had not seen that then. A record without a writer names nothing, and none can name it.
func loses(it *Item, held *dbadapter.Record) bool {
	v := held.Version
	if it.Action != dbadapter.Put || it.Record.Version.Writer == 0 || v.Writer == 0 || it.Record.Supersedes(v) {
		return false
	}
	if at, ok := held.Due(); ok && at <= it.Past {
		return false
	}
	return !it.Record.SameContent(held)
}

// slot is room for n records.
func (g *Group) slot(n int) []Held {
	start := len(g.slots)
	if cap(g.slots)-start < n {
		return make([]Held, 0, n)
	}
	g.slots = g.slots[:start+n]
	return g.slots[start : start : start+n]
}

// read returns the bucket of each item, and loads those that have not been loaded yet.
func (g *Group) read(items []Item) []*Bucket {
	if g.buckets == nil {
		g.buckets = make(map[dbadapter.Index]*Bucket, len(items))
	}
	of := make([]*Bucket, len(items))
	order := make([]placed, 0, len(items))
	fresh := make([]Bucket, len(items))
	for i := range items {
		index := items[i].Record.Index
		if of[i] = g.buckets[index]; of[i] == nil {
			of[i] = &fresh[len(order)]
			of[i].Index, g.buckets[index] = index, of[i]
			order = append(order, placed{index, of[i]})
		}
	}
	if len(order) == 0 {
		return of
	}
	slices.SortFunc(order, placed.compare)
	g.loaded = order
	g.loads++
	indices := make([]dbadapter.Index, len(order))
	for i := range order {
		indices[i] = order[i].index
	}
	for i, l := range g.load(indices) {
		b := order[i].bucket
		b.Held, b.was, b.err = l.Held, l.Held, l.Err
	}
	return of
}

// put sets the record at a place of the bucket, in a new slice, which is empty.
func (b *Bucket) put(next []Held, at int, replace bool, it *Item) {
	next = append(next, b.Held[:at]...)
	next = append(next, Held{it.Record, it})
	if replace {
		at++
	}
	b.Held = append(next, b.Held[at:]...)
}

// remove takes the record at a place out of the bucket, in a new slice.
func (b *Bucket) remove(at int) { b.Held = slices.Concat(b.Held[:at], b.Held[at+1:]) }

// Held is what an index holds after the group, by key, for a group that is decided after
// this one. ok is false where this one does not change it.
func (g *Group) Held(index dbadapter.Index) (held []Held, ok bool) {
	b := g.buckets[index]
	if b == nil || !b.touched {
		return nil, false
	}
	for _, h := range b.Held {
		held = append(held, Held{Record: h.Record})
	}
	return held, true
}

// Touched are the buckets that the group changes, in order.
func (g *Group) Touched() []*Bucket { return g.touched }

// placed is a bucket with its index at hand, to be sorted by it.
type placed struct {
	index  dbadapter.Index
	bucket *Bucket
}

func (p placed) compare(other placed) int { return cmp.Compare(p.index, other.index) }

// ByIndex yields the places of the buckets that the group changes among Touched, in the
// order of their indices. A group of one batch has sorted them when it loaded them.
func (g *Group) ByIndex() iter.Seq[int] {
	order := g.loaded
	if g.loads > 1 {
		order = make([]placed, len(g.touched))
		for i, b := range g.touched {
			order[i] = placed{b.Index, b}
		}
		slices.SortFunc(order, placed.compare)
	}
	return func(yield func(int) bool) {
		for _, p := range order {
			if p.bucket.touched && !yield(p.bucket.at) {
				return
			}
		}
	}
}

// Leavers are the records that the group moves to the kept log, in order. It leaves
// out conflicts that those behind them would push out at once.
func (g *Group) Leavers() []Leaver {
	bytes, first := 0, len(g.leavers) // of the conflicts that fit
	for first > 0 {
		l := &g.leavers[first-1]
		if l.Why == dbadapter.KeptConflict {
			if bytes += l.Size(); bytes > dbadapter.MaxConflictBytes {
				break
			}
		}
		first--
	}
	early := slices.Clone(g.leavers[:first])
	early = slices.DeleteFunc(early, func(l Leaver) bool { return l.Why == dbadapter.KeptConflict })
	return append(early, g.leavers[first:]...)
}

// Latest is the greatest clock among the records applied, or 0.
func (g *Group) Latest() dbadapter.Timestamp { return g.latest }

// Changes describes the group to observers and to the log; the first change
// gets the sequence number after seq. Changes[i] is of Touched()[i]. Keys refer
// to the items' records, or to those that were removed.
func (g *Group) Changes(seq uint64) []dbadapter.Change {
	changes := make([]dbadapter.Change, len(g.touched))
	keys := make([][]byte, 0, len(g.touched)) // mostly one a bucket
	for i, b := range g.touched {
		before, was := g.total(b.was)
		after, is := g.total(b.Held)
		start := len(keys)
		var shared bool
		keys, shared = b.changed(keys)
		changes[i] = dbadapter.Change{
			Seq:     seq + uint64(i) + 1,
			Index:   b.Index,
			Old:     before,
			New:     after,
			Keys:    keys[start:len(keys):len(keys)],
			Shared:  shared,
			Delta:   is.Sub(was),
			Records: len(b.Held) - len(b.was),
		}
	}
	return changes
}

// total is the checksum of records, and the sum of their digests.
func (g *Group) total(held []Held) (dbadapter.Checksum, dbadapter.Digest) {
	g.sum.Reset()
	for i := range held {
		g.sum.Add(&held[i].Record)
	}
	return g.sum.Pair(g.hasher).Checksum, g.sum.Digest
}
