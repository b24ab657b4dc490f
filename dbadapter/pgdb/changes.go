package pgdb

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// logPage is how many entries one query reads.
const logPage = 64

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return seq.Of(func(yield func(dbadapter.Change) bool) error {
		s, err := n.snapshot("read the change log")
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.changes(ctx, after, yield); err != nil {
			return fmt.Errorf("read the change log after %d: %w", after, err)
		}
		return nil
	})
}

// changes yields the log after a sequence number, and fails if a change is
// missing.
func (s *snapshot) changes(ctx context.Context, after uint64, yield func(dbadapter.Change) bool) error {
	n, end := s.namespace, s.meta.Seq
	if after >= end {
		return nil
	}
	if after+1 < s.meta.First {
		return fmt.Errorf("%w: it begins with %d; scan the records instead", dbadapter.ErrTrimmed, s.meta.First)
	}
	for next := after + 1; next <= end; {
		var page []dbadapter.Change
		read := next // the change that must follow
		err := s.query(func(rows pgx.Rows) error {
			var last int64
			var entry []byte
			if err := rows.Scan(&last, &entry); err != nil {
				return err
			}
			changes, err := layout.ReadLogEntry(entry, n.Number, uint64(last))
			if err != nil {
				return err
			}
			if changes[0].Seq > read || uint64(last) < read {
				return damage.Corrupt("the change log", "change %d is missing", read)
			}
			page = append(page, changes[read-changes[0].Seq:]...)
			read = uint64(last) + 1
			return nil
		}, `SELECT last, entry FROM log WHERE namespace = $1 AND last >= $2 ORDER BY last LIMIT $3`, n.Number, int64(next), logPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return damage.Corrupt("the change log", "it ends with %d, not %d", next-1, end)
		}
		for _, c := range page {
			if err := s.running(ctx); err != nil {
				return err
			}
			if !yield(c) {
				return nil
			}
		}
		next = read
	}
	return nil
}

// trim removes the oldest changes once the log is an eighth longer than it must be. So
// the cost of removing an entry is paid once, in bulk. It runs on the queue's
// goroutine.
func (w *writer) trim(n *namespace) error {
	need := uint64(n.store.options.LogLimit)
	if n.Meta.Own > 0 {
		need = min(dbadapter.LogReach*need, max(need, n.Meta.Seq-(n.Meta.Own-1)))
	}
	if held := n.Meta.Seq + 1 - n.Meta.First; held <= need+need/8 {
		return nil
	}
	m := n.Meta
	var last int64 // the last entry that nothing needs
	err := w.query(func(rows pgx.Rows) error { return rows.Scan(&last) },
		`SELECT last FROM log WHERE namespace = $1 AND last < $2 ORDER BY last DESC LIMIT 1`, n.Number, int64(m.Seq+1-need))
	if err != nil || last == 0 {
		return err
	}
	m.First = uint64(last) + 1
	return n.change(m, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM log WHERE namespace = $1 AND last <= $2`, n.Number, last)
	})
}

// SaveSummary keeps a summary, in one transaction that takes the place of the one
// before; see dbadapter.Namespace.
func (n *namespace) SaveSummary(ctx context.Context, seq uint64, summary []byte) error {
	if err := dbadapter.CheckSummary(summary); err != nil {
		return err
	}
	return n.Between(ctx, "save a summary", func() error {
		m := n.Meta
		if seq > m.Seq || seq == math.MaxUint64 {
			return fmt.Errorf("it is as of change %d, and the last change is %d", seq, m.Seq)
		}
		m.Own = seq + 1
		sealed := layout.AppendSeal(append([]byte{}, summary...), 0, layout.Seed(n.Number, kindSummary, seq))
		err := n.change(m, func(b *pgx.Batch) {
			b.Queue(`INSERT INTO summaries (namespace, seq, summary) VALUES ($1, $2, $3)
				ON CONFLICT (namespace) DO UPDATE SET seq = excluded.seq, summary = excluded.summary`, n.Number, int64(seq), sealed)
		})
		if err != nil {
			return err
		}
		return n.store.writer.trim(n)
	})
}

// Summary reads the summary kept last; see dbadapter.Namespace.
func (n *namespace) Summary(ctx context.Context) (uint64, []byte, error) {
	const what = "read the summary"
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	s, err := n.snapshot(what)
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	if s.meta.Own == 0 {
		return 0, nil, fmt.Errorf("%s: %w", what, dbadapter.ErrNotFound)
	}
	seq := s.meta.Own - 1
	var sealed []byte
	err = s.query(func(rows pgx.Rows) error { return rows.Scan(&sealed) },
		`SELECT summary FROM summaries WHERE namespace = $1`, n.Number)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", what, err)
	}
	summary, err := layout.Unseal(sealed, layout.Seed(n.Number, kindSummary, seq), "the summary")
	return seq, summary, err
}
