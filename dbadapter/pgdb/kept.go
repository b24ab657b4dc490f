package pgdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// An entry of the kept log is
//
//	ms(8) by(24) length(uvarint) key length(uvarint) head value  seal(8)
//
// under its kind and number.
func appendKept(b []byte, number uint32, seq uint64, at time.Time, l *commit.Leaver) []byte {
	start := len(b)
	b = layout.AppendKept(b, at, l.By, l.Record.Key)
	b = binary.AppendUvarint(b, uint64(layout.HeadSize(&l.Record.Record)))
	b = layout.AppendHead(b, &l.Record, 0)
	b = append(b, l.Record.Value...)
	return layout.AppendSeal(b, start, layout.KeptSeed(number, l.Why, seq))
}

// readKept decodes an entry.
func readKept(b []byte, number uint32, why dbadapter.Why, seq uint64, h dbadapter.Hasher) (dbadapter.Kept, error) {
	k, key, rest, err := layout.ReadKept(b, 0, number, why, seq)
	if err != nil {
		return k, err
	}
	head, value, err := layout.TakePiece(rest, "an entry of the kept log")
	if err != nil {
		return k, err
	}
	r, err := readRecord(key, head, value, h)
	k.Record = r.Record
	return k, err
}

// stageKept queues the leavers of a commit, in pieces of about the size of a batch.
func (n *namespace) stageKept(b *pgx.Batch, m *layout.Kept, leavers []commit.Leaver) {
	at := n.store.options.Now()
	var whys []int16
	var seqs, sizes []int64
	var entries [][]byte
	bytes := 0
	flush := func() {
		if len(entries) > 0 {
			b.Queue(`INSERT INTO kept (namespace, why, seq, size, entry)
				SELECT $1, k.* FROM unnest($2::smallint[], $3::bigint[], $4::bigint[], $5::bytea[]) k`, n.Number, whys, seqs, sizes, entries)
		}
		whys, seqs, sizes, entries, bytes = nil, nil, nil, nil, 0
	}
	for i := range leavers {
		l := &leavers[i]
		m.Seq++
		m.Count(l.Why, l.Size(), 1)
		entry := appendKept(nil, n.Number, m.Seq, at, l)
		whys, seqs, sizes = append(whys, int16(l.Why)), append(seqs, int64(m.Seq)), append(sizes, int64(l.Size()))
		entries = append(entries, entry)
		if bytes += len(entry); bytes > dbadapter.MaxBatchBytes {
			flush()
		}
	}
	flush()
}

// keptOnward reads a page of the kept log, of no more bytes than a page of records.
const keptOnward = `
SELECT why, seq, entry FROM (
	SELECT *, sum(octet_length(entry)) OVER (ORDER BY why, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
	FROM (
		SELECT why, seq, entry FROM kept
		WHERE namespace = $1 AND why = $2 AND seq > $3 ORDER BY seq LIMIT $4
	) p
) q WHERE before IS NULL OR before < $5 ORDER BY why, seq`

func (n *namespace) Kept(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return seq.Of(func(yield func(dbadapter.Kept) bool) error {
		s, err := n.snapshot("read the kept log")
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.kept(ctx, yield); err != nil {
			return fmt.Errorf("read the kept log: %w", err)
		}
		return nil
	})
}

func (s *snapshot) kept(ctx context.Context, yield func(dbadapter.Kept) bool) error {
	var found layout.Kept
	for _, why := range [...]dbadapter.Why{dbadapter.KeptConflict, dbadapter.KeptSetAside} {
		for last, more := int64(0), true; more; {
			page, err := s.keptPage(why, last)
			if err != nil {
				return err
			}
			for i := range page {
				k := &page[i]
				if err := s.running(ctx); err != nil {
					return err
				}
				found.CountRecord(why, &k.Record, 1)
				last = int64(k.Seq)
				if !yield(*k) {
					return nil
				}
			}
			more = len(page) > 0
		}
	}
	if err := s.running(ctx); err != nil {
		return err
	}
	return s.meta.Kept.Check(found)
}

func (s *snapshot) keptPage(why dbadapter.Why, after int64) (page []dbadapter.Kept, err error) {
	n := s.namespace
	err = s.query(func(rows pgx.Rows) error {
		var kind int16
		var seq int64
		var entry []byte
		if err := rows.Scan(&kind, &seq, &entry); err != nil {
			return err
		}
		k, err := readKept(entry, n.Number, why, uint64(seq), n.Hasher)
		page = append(page, k)
		return err
	}, keptOnward, n.Number, int16(why), after, mostPage, pageBytes)
	return page, err
}

func (n *namespace) Forget(ctx context.Context, seqs ...uint64) error {
	numbers := make([]int64, len(seqs))
	for i, seq := range seqs {
		numbers[i] = int64(seq)
	}
	return n.Between(ctx, "forget entries of the kept log", func() error {
		return n.takeOut(`SELECT why, seq, size FROM kept WHERE namespace = $1 AND why = ANY($2) AND seq = ANY($3)`,
			func(*layout.Kept) bool { return true }, []int16{int16(dbadapter.KeptConflict), int16(dbadapter.KeptSetAside)}, numbers)
	})
}

// trimPage is how many entries are looked at together when the kept log is trimmed.
const trimPage = 4096

// trimKept removes the oldest conflicts beyond the bounds. It runs on the queue's
// goroutine.
func (w *writer) trimKept(n *namespace) error {
	for n.Meta.Kept.Full() {
		was := n.Meta.Kept
		err := n.takeOut(`SELECT why, seq, size FROM kept WHERE namespace = $1 AND why = $2 ORDER BY seq LIMIT $3`,
			(*layout.Kept).Full, int16(dbadapter.KeptConflict), trimPage)
		if err != nil {
			return err
		}
		if n.Meta.Kept == was {
			return damage.Corrupt("the kept log", "its head counts %d conflicts of %d bytes, which are not there", was.Conflicts, was.Bytes)
		}
	}
	return nil
}

// takeOut removes the entries that a query finds, in its order and as long as more
// says so.
func (n *namespace) takeOut(find string, more func(*layout.Kept) bool, arguments ...any) error {
	m := n.Meta
	var whys []int16
	var seqs []int64
	err := n.store.writer.query(func(rows pgx.Rows) error {
		var why int16
		var seq, size int64
		if err := rows.Scan(&why, &seq, &size); err != nil || !more(&m.Kept) {
			return err
		}
		m.Kept.Count(dbadapter.Why(why), int(size), -1)
		whys, seqs = append(whys, why), append(seqs, seq)
		return nil
	}, find, append([]any{n.Number}, arguments...)...)
	if err != nil || len(seqs) == 0 {
		return err
	}
	return n.change(m, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM kept USING unnest($2::smallint[], $3::bigint[]) gone (why, seq)
			WHERE kept.namespace = $1 AND kept.why = gone.why AND kept.seq = gone.seq`, n.Number, whys, seqs)
	})
}
