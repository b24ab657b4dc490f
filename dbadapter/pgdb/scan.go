package pgdb

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// A scan reads page by page, each with a query of its own from where the last one
// ended. So nothing stays open at the server while the caller works, and any number of
// scans share a view. A page is small at first, for a reader that stops soon, and
// bounded in bytes as well: there is one more record than fits.
const (
	leastPage  = 16
	mostPage   = 512
	pageBytes  = 512 << 10
	pairsPage  = 8192
	morePages  = 4 // each page is so many times as long as the one before
	scanOnward = `
SELECT key, checksum, head, value, page FROM (
	SELECT *, count(*) OVER () AS page,
		sum(octet_length(value)) OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
	FROM (
		SELECT key, checksum, head, value FROM records
		WHERE namespace = $1 AND key >= $2 ORDER BY key LIMIT $3
	) p
) q WHERE before IS NULL OR before < $4 ORDER BY key`
)

func (s *snapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return seq.Of(func(yield func(dbadapter.Hashed) bool) error {
		if err := s.scan(ctx, prefix, after, yield); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		return nil
	})
}

// row is a record as a page holds it.
type row struct {
	dbadapter.Hashed
	stored int64 // the checksum of its bucket
	err    error
}

func (s *snapshot) scan(ctx context.Context, prefix, after []byte, yield func(dbadapter.Hashed) bool) error {
	n := s.namespace
	start := append([]byte{}, prefix...)
	if after != nil {
		if next := append(append([]byte{}, after...), 0); bytes.Compare(next, start) > 0 {
			start = next
		}
	}
	var sum dbadapter.Digest
	var count uint64
	for size := leastPage; ; size = min(morePages*size, mostPage) {
		var page []row
		inPage := 0
		err := s.query(func(rows pgx.Rows) error {
			var r row
			var key, head, value []byte
			if err := rows.Scan(&key, &r.stored, &head, &value, &inPage); err != nil {
				return err
			}
			r.Hashed, r.err = readRecord(key, head, value, n.Hasher)
			page = append(page, r)
			return nil
		}, scanOnward, n.Number, start, size, pageBytes)
		if err != nil {
			return err
		}
		for i := range page {
			r := &page[i]
			if err := s.running(ctx); err != nil {
				return err
			}
			if r.err != nil {
				return r.err
			}
			if !bytes.HasPrefix(r.Key, prefix) {
				return nil
			}
			if err := s.check(&r.Hashed, r.stored); err != nil {
				return err
			}
			sum, count = sum.Add(r.Digest), count+1
			start = append(append(start[:0], r.Key...), 0) // before the caller has the key
			if !yield(r.Hashed) {
				return nil
			}
		}
		if len(page) == inPage && inPage < size {
			break
		}
	}
	if err := s.running(ctx); err != nil {
		return err
	}
	if len(prefix) == 0 && after == nil && (s.meta.Digest != sum || s.meta.Records != count) {
		return damage.Corrupt("the records", "%d are there, %d were written; one is missing, or is not the newest of its key", count, s.meta.Records)
	}
	return nil
}

func (s *snapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return seq.Of(func(yield func(dbadapter.Pair) bool) error {
		if err := s.pairs(ctx, from, to, yield); err != nil {
			return fmt.Errorf("list the pairs: %w", err)
		}
		return nil
	})
}

// place is an index as the database orders it; all that a hasher makes are far below
// the greatest.
func place(index dbadapter.Index) int64 { return int64(min(index, math.MaxInt64)) }

func (s *snapshot) pairs(ctx context.Context, from, to dbadapter.Index, yield func(dbadapter.Pair) bool) error {
	n := s.namespace
	next, end := place(from), int64(math.MaxInt64)
	if to != 0 {
		end = place(to)
	}
	for size := leastPage; ; size = min(morePages*size, pairsPage) {
		var page []dbadapter.Pair
		read := 0
		err := s.query(func(rows pgx.Rows) error {
			var at, stored int64
			if err := rows.Scan(&at, &stored); err != nil {
				return err
			}
			read++
			p := dbadapter.Pair{Index: dbadapter.Index(at)}
			var err error
			if p.Checksum, err = unsealSum(n.Number, p.Index, stored); err != nil {
				return err
			}
			if last := len(page) - 1; last >= 0 && page[last].Index == p.Index { // of the same bucket
				if page[last] != p {
					return damage.Corrupt("a bucket", "its records disagree on its checksum")
				}
				return nil
			}
			page = append(page, p)
			return nil
		}, `SELECT idx, checksum FROM records WHERE namespace = $1 AND idx >= $2 AND idx < $3 ORDER BY idx LIMIT $4`, n.Number, next, end, size)
		if err != nil {
			return err
		}
		for _, p := range page {
			if err := s.running(ctx); err != nil {
				return err
			}
			if !yield(p) {
				return nil
			}
			next = int64(p.Index) + 1
		}
		if read < size {
			return s.running(ctx)
		}
	}
}
