package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// store is a namespace on a simulated disk: memdb behind a log. Readers and the
// observer see a commit only after it is synced.
type store struct {
	dbadapter.Namespace // in memory
	memory              *memdb.Store
	entries, summary    *sim.File
	// waiting are the commits that are written and not synced, in order.
	waiting []waiting
	// observed is called with each record that is now held, admitted after a
	// commit of admitted records.
	observed func(*dbadapter.Record)
	admitted func()
	// replacing is told of writes that replace greater records, before they are
	// written.
	replacing func([]dbadapter.Write)
	// removing is told of removals before they are written, removed of each after.
	removing func([]dbadapter.Write)
	removed  func(*dbadapter.Record, dbadapter.Action)
	took     int // records, by Apply
	closed   bool
	log      logOptions
	fresh    []dbadapter.Change // that log.changed is to be told
	now      func() time.Time
	at       time.Time // of the entry that is being applied
}

type waiting struct {
	entry *logged
	done  func([]dbadapter.Outcome, error)
}

// logOptions are those of the change log.
type logOptions struct {
	id    dbadapter.LogID
	keeps int // how many changes at least; 0: as many as memdb does by itself
	// changed, if not nil, is told of each change, those before the opening included.
	changed func(*check.Change)
}

var _ dbadapter.Namespace = (*store)(nil)

// openStore replays the log whose files begin with that name. The observer gets the changes that come after.
func openStore(disk *sim.Disk, name string, id dbadapter.NamespaceID, h dbadapter.Hasher, log logOptions, now func() time.Time, observe func([]dbadapter.Change)) (*store, error) {
	ctx := context.Background()
	s := &store{log: log, now: now, entries: disk.File(name + "log"), summary: disk.File(name + "summary"), admitted: func() {}}
	s.deaf()
	s.memory = memdb.New(memdb.Options{LogLimit: log.keeps, Now: func() time.Time { return s.at }})
	replayed := false
	var err error
	s.Namespace, err = s.memory.Namespace(ctx, id, h, func(changes []dbadapter.Change) {
		if replayed {
			observe(changes)
		}
		if log.changed != nil {
			s.fresh = append(s.fresh, changes...)
		}
	})
	if err != nil {
		return nil, err
	}
	for n, b := range s.entries.Entries() {
		var e logged
		if err := decode(b, &e); err != nil {
			return nil, fmt.Errorf("%w: entry %d of the log: %w", dbadapter.ErrCorrupt, n, err)
		}
		// A batch that was refused is logged, and is refused again.
		if _, err := s.do(ctx, &e); err != nil && !errors.Is(err, dbadapter.ErrConflict) && !errors.Is(err, dbadapter.ErrLimit) {
			return nil, fmt.Errorf("%w: entry %d of the log cannot be applied: %w", dbadapter.ErrCorrupt, n, err)
		}
	}
	replayed = true
	return s, nil
}

// deaf ends that the store calls its observers.
func (s *store) deaf() {
	s.observed, s.replacing = func(*dbadapter.Record) {}, func([]dbadapter.Write) {}
	s.removing, s.removed = func([]dbadapter.Write) {}, func(*dbadapter.Record, dbadapter.Action) {}
}

// do does in memory what an entry of the log says.
func (s *store) do(ctx context.Context, e *logged) ([]dbadapter.Outcome, error) {
	s.at = time.UnixMilli(e.At).UTC()
	switch {
	case e.Raise != nil:
		return nil, s.Namespace.Raise(ctx, *e.Raise)
	case e.Lower != nil:
		return nil, s.Namespace.Lower(ctx, *e.Lower)
	case e.Forget != nil:
		return nil, s.Namespace.Forget(ctx, e.Forget...)
	}
	outcomes, err := s.Namespace.Apply(ctx, e.Writes)
	if len(s.fresh) > 0 {
		if err := s.tell(); err != nil {
			return outcomes, err
		}
	}
	return outcomes, err
}

// tell tells of the changes of a commit.
func (s *store) tell() error {
	snap, err := s.Namespace.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for _, c := range s.fresh {
		told := &check.Change{Seq: c.Seq, Index: c.Index, Keys: c.Keys, Held: make([]*dbadapter.Record, len(c.Keys))}
		for i, key := range c.Keys {
			r, err := snap.Get(key)
			if err == nil {
				told.Held[i] = &r
			} else if !errors.Is(err, dbadapter.ErrNotFound) {
				return err
			}
		}
		s.log.changed(told)
	}
	s.fresh = nil
	return nil
}

// begin adds an entry of now, which is not synced yet.
func (s *store) begin(e *logged) error {
	e.At = s.now().UnixMilli()
	return s.entries.Append(encode(e))
}

// write begins a commit. The next flush syncs it, and calls done with the
// outcome.
func (s *store) write(writes []dbadapter.Write, done func([]dbadapter.Outcome, error)) error {
	if s.closed {
		return dbadapter.ErrClosed
	}
	e := &logged{Writes: writes}
	if err := s.begin(e); err != nil {
		return err
	}
	s.waiting = append(s.waiting, waiting{e, done})
	return nil
}

// flush syncs the waiting commits, and shows them to readers.
func (s *store) flush() {
	if len(s.waiting) == 0 {
		return
	}
	s.entries.Sync()
	all := s.waiting
	s.waiting = nil
	for _, w := range all {
		outcomes, err := s.do(context.Background(), w.entry)
		for i, o := range outcomes {
			if err != nil || o.Result != dbadapter.Applied {
				continue
			}
			if one := &w.entry.Writes[i]; one.Action.Removes() {
				s.removed(&one.Record.Record, one.Action)
			} else {
				s.observed(&one.Record.Record)
			}
		}
		w.done(outcomes, err)
	}
}

// Apply implements dbadapter.Namespace. The writes must be valid: each start
// applies the log again.
func (s *store) Apply(_ context.Context, writes []dbadapter.Write) (outcomes []dbadapter.Outcome, err error) {
	switch {
	case len(writes) == 0:
	case writes[0].Action == dbadapter.Replace, writes[0].Action == dbadapter.Put && writes[0].If != nil: // a restamp, or an adoption
		s.replacing(writes)
	case writes[0].Action.Removes():
		s.removing(writes)
	}
	if err := s.write(writes, func(o []dbadapter.Outcome, e error) { outcomes, err = o, e }); err != nil {
		return nil, err
	}
	s.flush()
	for i, o := range outcomes {
		if o.Result == dbadapter.Applied && !writes[i].Action.Removes() {
			s.took++
		}
	}
	s.admitted()
	return outcomes, err
}

// Raise implements dbadapter.Namespace.
func (s *store) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	if s.Ceiling() >= to {
		return nil
	}
	return s.append(ctx, &logged{Raise: &to})
}

// Lower implements dbadapter.Namespace.
func (s *store) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	if s.Ceiling() <= to {
		return nil
	}
	return s.append(ctx, &logged{Lower: &to})
}

// Forget implements dbadapter.Namespace.
func (s *store) Forget(ctx context.Context, seqs ...uint64) error {
	return s.append(ctx, &logged{Forget: seqs})
}

// Log implements dbadapter.Namespace: the memory is filled anew at each start, and the log
// is the same.
func (s *store) Log() dbadapter.LogID { return s.log.id }

// append makes an entry durable after those that wait, and does what it says.
func (s *store) append(ctx context.Context, e *logged) error {
	if s.closed {
		return dbadapter.ErrClosed
	}
	s.flush()
	if err := s.begin(e); err != nil {
		return err
	}
	s.entries.Sync()
	_, err := s.do(ctx, e)
	return err
}

// SaveSummary implements dbadapter.Namespace.
func (s *store) SaveSummary(ctx context.Context, seq uint64, summary []byte) error {
	if s.closed {
		return dbadapter.ErrClosed
	}
	s.flush()
	if err := s.Namespace.SaveSummary(ctx, seq, summary); err != nil {
		return err
	}
	return s.summary.Replace(encode(keptSummary{seq, summary}))
}

// Summary implements dbadapter.Namespace.
func (s *store) Summary(context.Context) (uint64, []byte, error) {
	b := s.summary.Bytes()
	if len(b) == 0 {
		return 0, nil, dbadapter.ErrNotFound
	}
	var kept keptSummary
	if err := decode(b, &kept); err != nil {
		return 0, nil, fmt.Errorf("%w: the summary: %w", dbadapter.ErrCorrupt, err)
	}
	return kept.Seq, kept.Summary, nil
}

// Close implements dbadapter.Namespace. What still uses it, as a sync of a shard that was
// left, writes nothing more. Another store of that shard may have the files by then.
func (s *store) Close() error {
	s.closed = true
	return s.memory.Close()
}
