package model

import (
	"context"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// store is a namespace on a simulated disk: memdb behind a log. Readers and the
// observer see a commit only after it is synced.
type store struct {
	dbadapter.Namespace // in memory
	memory              *memdb.Store
	wal                 *wal
	// waiting are the commits that are written and not synced, in order.
	waiting []waiting
	// observed is called with each record that is now held, admitted after a
	// commit of admitted records.
	observed func(*dbadapter.Record)
	admitted func()
	// replacing is told of writes that replace greater records, before they are
	// written.
	replacing func([]dbadapter.Write)
	took      int // records, by Apply
}

type waiting struct {
	writes []dbadapter.Write
	done   func([]dbadapter.Outcome, error)
}

var _ dbadapter.Namespace = (*store)(nil)

// openStore replays the log. The observer gets the changes that come after.
func openStore(disk *sim.Disk, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (*store, error) {
	ctx := context.Background()
	s := &store{memory: memdb.New(memdb.Options{})}
	replayed := false
	var err error
	s.Namespace, err = s.memory.Namespace(ctx, id, h, func(changes []dbadapter.Change) {
		if replayed {
			observe(changes)
		}
	})
	if err != nil {
		return nil, err
	}
	s.wal, err = openLog(disk, func(writes []dbadapter.Write, lower dbadapter.Timestamp) (err error) {
		if lower > 0 {
			return s.Namespace.Lower(ctx, lower)
		}
		for i := range writes {
			if writes[i].Record, err = dbadapter.Hash(h, writes[i].Record.Record); err != nil {
				return corrupt("an entry of the log: %v", err)
			}
		}
		if _, err := s.Namespace.Apply(ctx, writes); err != nil {
			return corrupt("an entry of the log cannot be applied: %v", err)
		}
		return nil
	})
	replayed = true
	return s, err
}

// write begins a commit. The next flush syncs it, and calls done with the
// outcome.
func (s *store) write(writes []dbadapter.Write, done func([]dbadapter.Outcome, error)) error {
	if err := s.wal.append(writes); err != nil {
		return err
	}
	s.waiting = append(s.waiting, waiting{writes, done})
	return nil
}

// flush syncs the waiting commits, and shows them to readers.
func (s *store) flush() error {
	if len(s.waiting) == 0 {
		return nil
	}
	if err := s.wal.commit(); err != nil {
		return err
	}
	all := s.waiting
	s.waiting = nil
	for _, w := range all {
		outcomes, err := s.Namespace.Apply(context.Background(), w.writes)
		for i, o := range outcomes {
			if err == nil && o.Result == dbadapter.Applied {
				s.observed(&w.writes[i].Record.Record)
			}
		}
		w.done(outcomes, err)
	}
	return nil
}

// Apply implements dbadapter.Namespace. The writes must be valid: each start
// applies the log again.
func (s *store) Apply(_ context.Context, writes []dbadapter.Write) (outcomes []dbadapter.Outcome, err error) {
	if len(writes) > 0 && writes[0].Replace {
		s.replacing(writes)
	}
	if err := s.write(writes, func(o []dbadapter.Outcome, e error) { outcomes, err = o, e }); err != nil {
		return nil, err
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if o.Result == dbadapter.Applied {
			s.took++
		}
	}
	s.admitted()
	return outcomes, err
}

// Lower implements dbadapter.Namespace.
func (s *store) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	if s.Latest() <= to {
		return nil
	}
	if err := s.wal.lower(to); err != nil {
		return err
	}
	if err := s.wal.commit(); err != nil {
		return err
	}
	return s.Namespace.Lower(ctx, to)
}

// Close implements dbadapter.Namespace.
func (s *store) Close() error { return s.memory.Close() }
