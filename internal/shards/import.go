package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import collects a window of items and sorts it by shards. Each shard's items become records,
// which go to all hosts of the shard, many in a message, while the next window is collected.

// Bounds of an import.
const (
	// A window ends before a key that it has already: the next item of the key sees what this one
	// wrote. Two windows are in memory at once.
	importWindow      = 8192
	importWindowBytes = 8 << 20
	// importShards are brought to their hosts beside one another.
	importShards = 16
	// importPatience is how long the items of a shard in one window may take.
	importPatience = 2 * Patience
	// importTries is how often a record is made anew, because a host holds what it has not seen.
	importTries = 8
	// importAhead is how many messages a host may owe an answer to, where the others are enough.
	// What it is not told it hears by a sync.
	importAhead = 8
	// recordCost is what a record takes in a message beside its key and value, at most.
	recordCost = 256
)

// ImportOptions say how items are imported.
type ImportOptions struct {
	Level quorum.Level
	// AsNew has an item whose date hosts do not take written as of now, unless one holds something later than the date.
	AsNew bool
	// Refused, if not nil, is told of each item that is refused for its date, in order: which one it is, counted from 0.
	Refused func(at int64, item *node.Item)
	// Earliest is the earliest date of an import that this one goes on with; zero: of none.
	Earliest time.Time
}

// Import brings items to the hosts of their shards. The error is that of the first item that
// failed, and names it: all before it are dealt with, and of those behind it some may be.
func (s *Shards) Import(ctx context.Context, items iter.Seq2[node.Item, error], o ImportOptions) (node.ImportResult, error) {
	im := &importing{Shards: s, ImportOptions: o, owed: map[node.ID]int{}}
	im.result.Earliest = o.Earliest
	w, number := newWindow(), int64(0)
	for item, err := range items {
		if err == nil {
			err = s.NS.CheckItem(&item)
		}
		if err == nil {
			err = s.CheckKey(item.Key)
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if number++; err != nil {
			im.begin(ctx, w)
			return im.end(&ItemError{number, err})
		}
		if w.full(&item) {
			if !im.begin(ctx, w) {
				return im.end(nil)
			}
			w = newWindow()
		}
		im.tag(w.add(&item))
	}
	im.begin(ctx, w)
	return im.end(nil)
}

// ItemError is why an item could not be imported. Items are counted from 1.
type ItemError struct {
	Item int64
	Err  error
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Item, e.Err) }

// Unwrap makes it the error that it is.
func (e *ItemError) Unwrap() error { return e.Err }

// importing is one import.
type importing struct {
	*Shards
	ImportOptions
	count  func() // waits for the window that is imported, and counts it; nil: none is
	result node.ImportResult
	failed error
	// earliest is the earliest date of the window that is imported, and of those before.
	earliest dbadapter.Timestamp

	owing sync.Mutex      // guards what follows
	owed  map[node.ID]int // messages that a host has not answered
}

// begin imports a window, once the one before has ended. false: an item of that has failed.
func (im *importing) begin(ctx context.Context, w *window) bool {
	if im.wait(); im.failed != nil || len(w.items) == 0 {
		return im.failed == nil
	}
	if im.earliest = 0; !im.result.Earliest.IsZero() {
		im.earliest = dbadapter.TimestampAt(im.result.Earliest)
	}
	for _, i := range w.items {
		if i.dated() && (im.earliest == 0 || dbadapter.TimestampAt(i.Time) < im.earliest) {
			im.earliest = dbadapter.TimestampAt(i.Time)
		}
	}
	wait := beside(ctx, im.Shards, func(ctx context.Context) (error, error) { return im.run(ctx, w), nil })
	im.count = func() {
		if failed, err := wait(forever); err != nil {
			im.failed = &ItemError{im.result.Items + 1, err}
		} else {
			im.countUp(w, failed)
		}
	}
	return true
}

// wait waits for the window that is imported.
func (im *importing) wait() {
	if im.count != nil {
		im.count()
		im.count = nil
	}
}

// end ends the import. An error of an earlier item comes first.
func (im *importing) end(err *ItemError) (node.ImportResult, error) {
	im.wait()
	if im.failed == nil && err != nil {
		im.failed = err
	}
	return im.result, im.failed
}

// window is what is imported at a time.
type window struct {
	items  []*imported
	places map[string]struct{}
	weight int
}

func newWindow() *window { return &window{places: map[string]struct{}{}} }

// full reports whether an item has to wait for the next window.
func (w *window) full(item *node.Item) bool {
	_, there := w.places[string(item.Key)]
	return there || len(w.items) >= importWindow || len(w.items) > 0 && w.weight+len(item.Key)+len(item.Value) > importWindowBytes
}

func (w *window) add(item *node.Item) *imported {
	own := &imported{Item: *item}
	own.Key, own.Value = bytes.Clone(item.Key), bytes.Clone(item.Value)
	w.items = append(w.items, own)
	w.places[string(own.Key)] = struct{}{}
	w.weight += len(item.Key) + len(item.Value)
	return own
}

// imported is an item on its way.
type imported struct {
	node.Item
	record *dbadapter.Record   // nil: to be made
	seen   []*dbadapter.Record // what it is to be later than, and replaces
	asNew  bool                // its date is not taken; the record is one of now
	user   []byte              // the user's value
	large  bool                // that is to be a body
	body   *bodies.Pointer     // which it is then
	sent   bool                // a record of it may be at a host
	// What becomes of it.
	done, fresh, stale, full, expired, refused bool
	from                                       time.Time // from which date on it would not have been refused
}

// dated reports whether the item merges by its date.
func (i *imported) dated() bool { return !i.Time.IsZero() && !i.asNew }

// hides reports whether the item has expired: it would hide what is there.
func (i *imported) hides(now time.Time) bool {
	r := i.Record()
	return r.Expired(now)
}

// countUp adds what has become of a window, up to the first item that has failed.
func (im *importing) countUp(w *window, err error) {
	r := &im.result
	for _, i := range w.items {
		if i.fresh && i.record != nil {
			im.wrote(i.record)
		}
		if !i.done {
			im.failed = &ItemError{r.Items + 1, err}
			return
		}
		switch {
		case i.expired:
			r.Expired++
		case i.refused:
			r.Refused++
			r.From = i.from
			if im.Refused != nil {
				item := i.Item
				item.Value = i.user
				im.Refused(r.Items, &item)
			}
		case i.full:
			r.Full++
		case i.stale:
			r.Stale++
		case i.fresh:
			r.Written++
			if i.asNew {
				r.AsNew++
			}
		default:
			r.Unchanged++
		}
		if i.fresh && i.dated() && (r.Earliest.IsZero() || i.Time.Before(r.Earliest)) {
			r.Earliest = i.Time
		}
		r.Items++
	}
}

// run imports a window. The error is that of an item that failed.
func (im *importing) run(ctx context.Context, w *window) error {
	var order []placement.Shard
	parts := map[placement.Shard][]*imported{}
	for _, i := range w.items {
		shard := im.NS.Home(i.Key)
		if parts[shard] == nil {
			order = append(order, shard)
		}
		parts[shard] = append(parts[shard], i)
	}
	return each(ctx, im.Shards, len(order), importShards, func(ctx context.Context, i int) error { return im.part(ctx, order[i], parts[order[i]]) })
}

// part brings items of a shard to its hosts.
func (im *importing) part(ctx context.Context, shard placement.Shard, items []*imported) error {
	large := slices.DeleteFunc(slices.Clone(items), func(i *imported) bool { return !i.large || i.done })
	if err := each(ctx, im.Shards, len(large), bodiesAhead, func(ctx context.Context, i int) error { return im.putBody(ctx, large[i]) }); err != nil {
		return err
	}
	defer im.hints(items)
	over := im.Net.Now() + importPatience
	for tries := 1; ; tries++ {
		_, err := anew(ctx, im.Shards, shard, over, func(a *Asker) (struct{}, error) { return struct{}{}, im.under(ctx, a, over, items, tries == 1) })
		items = slices.DeleteFunc(slices.Clone(items), func(i *imported) bool { return i.done })
		switch {
		case err != nil || len(items) == 0:
			return err
		case tries == importTries:
			return fmt.Errorf("%w: other writes of %q overtook it at each attempt", overtaken(items[0].sent), items[0].Key)
		}
		if err := im.Net.Sleep(ctx, time.Duration(im.Random(int64(remakePause)))); err != nil { // (6)
			return err
		}
	}
}

// under sends what is to be held under one row, each item once. first: hosts that have what an item
// says need not hold its record.
func (im *importing) under(ctx context.Context, a *Asker, over time.Duration, items []*imported, first bool) error {
	if err := mayReach(im.Level, a.Row()); err != nil {
		return err
	}
	for len(items) > 0 {
		var some []*imported
		if some, items = im.cut(a, items); len(some) == 0 {
			return nil
		}
		m, err := im.message(a, over, some, first)
		if err != nil {
			return err
		}
		if err := m.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cut takes as many items as a message has room for, and leaves out those that need none.
func (im *importing) cut(a *Asker, items []*imported) (some, rest []*imported) {
	size := 0
	for at, i := range items {
		if i.done {
			continue
		}
		if i.hides(im.NS.Time()) {
			i.done, i.expired = true, true
			continue
		}
		if i.dated() {
			if from, covered := a.view.Covers(i.Time, 0); !covered && !im.refuse(i, from) {
				continue
			}
		}
		size += (&dbadapter.Record{Key: i.Key, Value: i.Value}).Weight() + recordCost
		if len(some) > 0 && (size > wire.BatchBytes || len(some) == wire.BatchRecords) {
			return some, items[at:]
		}
		some = append(some, i)
	}
	return some, nil
}

// refuse ends an item whose date is not taken. true: it is to be written as of now.
func (im *importing) refuse(i *imported, from time.Time) bool {
	if im.AsNew {
		i.asNew, i.record = true, nil
		return true
	}
	i.done, i.refused, i.from = true, true, from
	return false
}

// message is records that hosts are asked to hold, under one row.
type message struct {
	*importing
	*spread
	row   *quorum.Row
	items []*imported
	// spared are hosts that are not asked.
	spared map[node.ID]bool
}

// message makes the records of items that have none.
func (im *importing) message(a *Asker, over time.Duration, items []*imported, first bool) (*message, error) {
	var missing []*imported
	var of []node.Item
	var seen [][]*dbadapter.Record
	for _, i := range items {
		if i.record != nil {
			continue
		}
		item := i.Item
		if i.asNew {
			item.Time = time.Time{}
		}
		missing, of, seen = append(missing, i), append(of, item), append(seen, i.seen)
	}
	made, err := a.MakeItems(of, seen)
	if err != nil {
		return nil, err
	}
	for at, i := range missing {
		i.record = &made[at]
	}
	records := make([]dbadapter.Record, len(items))
	for at, i := range items {
		records[at] = *i.record
	}
	p := im.spread(a, over, wire.AskHold{Records: records, New: first, Earliest: im.earliest})
	return &message{importing: im, spread: p, row: a.Row(), items: items, spared: map[node.ID]bool{}}, nil
}

// run asks all hosts of the row. It ends when each item is decided: it is done, or its record is to
// be made anew.
func (m *message) run(ctx context.Context) error {
	defer m.ended.Store(true)
	for _, id := range m.hosts() {
		m.owes(id, 1)
		m.ask(id, func() { m.owes(id, -1) })
	}
	left := make([]int, len(m.items))
	for j := range left {
		left[j] = j
	}
	for {
		left = slices.DeleteFunc(left, m.decided)
		switch {
		case len(left) == 0:
			return nil
		case !m.asker.Current():
			m.leave(left)
			return errRow
		case m.open == 0:
			return m.fail(left)
		case m.next(ctx):
		case ctx.Err() != nil && len(m.sent) == 0 && m.flying.Load() == 0:
			return context.Cause(ctx)
		default:
			return m.fail(left)
		}
	}
}

// hosts are those that are asked: but for those that owe many answers, where the others are enough.
func (m *message) hosts() []node.ID {
	all := m.nearest(m.row.Hosts())
	slow := func(id node.ID) bool { return m.owes(id, 0) >= importAhead }
	prompt := slices.DeleteFunc(slices.Clone(all), slow)
	may := func(id node.ID) bool { return slices.Contains(prompt, id) }
	if len(prompt) == len(all) || !m.reaches(m.Level, m.row, may, may) {
		return all
	}
	for _, id := range all {
		m.spared[id] = !may(id)
	}
	return prompt
}

// owes changes how many messages a host has not answered, and says how many they are.
func (im *importing) owes(id node.ID, by int) int {
	im.owing.Lock()
	defer im.owing.Unlock()
	im.owed[id] += by
	return im.owed[id]
}

// outcome is what a host has done with the record of an item; nil: it has not answered.
func (m *message) outcome(id node.ID, j int) *Held {
	if h := m.answers[id]; h != nil {
		return &h.Outcomes[j]
	}
	return nil
}

// has reports whether a host has what a record says.
func has(o *Held) bool { return o != nil && (o.Held || o.There) }

// decided reports whether nothing more is asked about an item by this message, and notes what becomes of it.
func (m *message) decided(j int) bool {
	i := m.items[j]
	var other, same []*dbadapter.Record
	late, here := false, false
	for _, id := range m.row.Hosts() {
		switch o := m.outcome(id, j); {
		case o == nil:
		case o.Held:
			i.fresh, here = true, true
		case o.There:
			same, here = append(same, o.Other), true
		case o.Other != nil:
			other = append(other, o.Other)
		case errors.Is(o.Declined, node.ErrLate):
			late = true
		case errors.Is(o.Declined, dbadapter.ErrLimit):
			i.done, i.full = true, true
			return true
		}
	}
	has := func(id node.ID) bool { return has(m.outcome(id, j)) }
	if i.dated() {
		return m.merged(i, other, here, m.reaches(m.Level, m.row, func(id node.ID) bool {
			o := m.outcome(id, j)
			return o != nil && (has(id) || o.Other != nil || errors.Is(o.Declined, node.ErrLate))
		}, m.whole))
	}
	// Hosts that hold the record, and hosts that have what it says by another one, are not enough
	// together: a third one may hold something in between. Then all are to hold the next record.
	held := func(id node.ID) bool { o := m.outcome(id, j); return o != nil && o.Held }
	enough := m.reaches(m.Level, m.row, held, m.whole)
	for _, r := range same {
		enough = enough || m.reaches(m.Level, m.row, func(id node.ID) bool {
			o := m.outcome(id, j)
			return o != nil && o.There && o.Other.Version == r.Version
		}, m.whole)
	}
	switch {
	case enough:
		i.done = true
		return true
	case len(other) == 0 && !late && !m.reaches(m.Level, m.row, has, m.whole):
		return false
	}
	m.leave([]int{j})
	i.record, i.sent = nil, i.sent || here // (6)
	i.seen = append(i.seen, same...)
	for _, o := range other {
		if i.asNew && !i.fresh && o.Version.Clock > dbadapter.TimestampAt(i.Time) {
			i.done, i.stale = true, true
		}
		i.seen = append(i.seen, o)
	}
	return true
}

// merged decides a dated item, which wins or loses by its date at each host. It is refused if
// no host has taken it, none may, and those that have answered are enough.
func (m *message) merged(i *imported, other []*dbadapter.Record, here, enough bool) bool {
	switch {
	case !enough:
		return false
	case here || len(other) > 0:
		i.done, i.stale = true, len(other) > 0
		return true
	}
	from := i.Time
	for _, id := range m.row.Hosts() {
		h := m.answers[id]
		if h == nil && (m.sent[id] || !m.spared[id] && m.why[id] == nil) {
			return false // it may have taken it
		}
		if h != nil && h.From.After(from) {
			from = h.From
		}
	}
	m.refuse(i, from)
	return true
}

// leave notes which records of items are at hosts, or may be.
func (m *message) leave(left []int) {
	for _, j := range left {
		for _, id := range m.row.Hosts() {
			o := m.outcome(id, j)
			m.items[j].sent = m.items[j].sent || o == nil && (m.sent[id] || m.flying.Load() > 0) || has(o)
		}
	}
}

// fail is the error of the first item that is not decided.
func (m *message) fail(left []int) error {
	m.leave(left)
	j, why := left[0], map[node.ID]error{}
	has := func(id node.ID) bool { return has(m.outcome(id, j)) }
	var declined error
	for _, id := range m.row.Hosts() {
		switch o := m.outcome(id, j); {
		case o == nil:
			if why[id] = m.why[id]; m.why[id] == nil {
				why[id] = errSilent
			}
		case o.Declined != nil:
			declined, why[id] = o.Declined, o.Declined
		case has(id) && m.row.IsOld(id) && !m.answers[id].Whole:
			why[id] = errNotWhole
		}
	}
	old := sideOf(m.row.Old, func(id node.ID) bool { return has(id) && m.whole(id) })
	text := fmt.Sprintf("%s (%s)", count(m.row, "hold it", old, sideOf(m.row.New, has)), words(why))
	switch {
	case m.items[j].sent:
		return fmt.Errorf("%w: %s; it may still win", ErrUnconfirmed, text)
	case declined != nil:
		return fmt.Errorf("%w: nothing is written: %s", declined, text)
	}
	return fmt.Errorf("%w: nothing is written: %s", reconcile.ErrUnreachable, text)
}
