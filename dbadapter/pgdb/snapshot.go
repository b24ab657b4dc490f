package pgdb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

type snapshot struct {
	namespace *namespace
	meta      layout.Meta // the namespace's head as of the snapshot

	mu   sync.Mutex // guards what follows; the namespace's Close takes it too
	view *view      // nil once closed
}

func (n *namespace) Snapshot() (dbadapter.Snapshot, error) {
	s, err := n.snapshot("open a snapshot")
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (n *namespace) snapshot(what string) (*snapshot, error) {
	if err := n.Life.Enter(what, n.ID); err != nil {
		return nil, err
	}
	defer n.Life.Leave()
	v, m, err := n.store.acquire(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s := &snapshot{namespace: n, meta: m, view: v}
	n.Life.Opened(s)
	return s, nil
}

// query reads rows, if the snapshot is open. The lock is held meanwhile, and never
// while a caller runs: the store can be closed under a scan, which then ends with
// ErrClosed.
func (s *snapshot) query(row func(pgx.Rows) error, sql string, arguments ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		return fmt.Errorf("the snapshot is %w", dbadapter.ErrClosed)
	}
	return s.view.query(row, sql, arguments...)
}

// running reports why a scan must end between two records that it has read.
func (s *snapshot) running(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		return fmt.Errorf("the snapshot has been %w", dbadapter.ErrClosed)
	}
	return nil
}

func (s *snapshot) Seq() uint64 { return s.meta.Seq }

func (s *snapshot) Get(key []byte) (dbadapter.Record, error) {
	var r *dbadapter.Hashed
	key = append([]byte{}, key...) // the record refers to it
	n := s.namespace
	var sum int64
	err := s.query(func(rows pgx.Rows) error {
		var head, value []byte
		if err := rows.Scan(&sum, &head, &value); err != nil {
			return err
		}
		found, err := readRecord(key, head, value, n.Hasher)
		r = &found
		return err
	}, `SELECT checksum, head, value FROM records WHERE namespace = $1 AND key = $2`, n.Number, key)
	if err == nil && r != nil {
		err = s.check(r, sum)
	}
	switch {
	case err != nil:
		return dbadapter.Record{}, fmt.Errorf("get %s: %w", damage.Quote(key), err)
	case r == nil:
		return dbadapter.Record{}, fmt.Errorf("get %s: %w", damage.Quote(key), dbadapter.ErrNotFound)
	}
	return r.Record, nil
}

// check compares a record with the checksum of its bucket, which stands in the same
// row.
func (s *snapshot) check(r *dbadapter.Hashed, stored int64) error {
	sum, err := unsealSum(s.namespace.Number, r.Index, stored)
	if err != nil || dbadapter.PairOf(s.namespace.Hasher, r).Checksum == sum {
		return err
	}
	held, err := s.namespace.held(s.query, []dbadapter.Index{r.Index}) // it is not alone there
	if err != nil {
		return err
	}
	if held[0].Err == nil && !slices.ContainsFunc(held[0].Held, func(h commit.Held) bool { return bytes.Equal(h.Record.Key, r.Key) }) {
		return grouped.ErrStale(r.Key)
	}
	return held[0].Err
}

// held reads and verifies the records under each of the indices, which are sorted.
func (n *namespace) held(read query, indices []dbadapter.Index) ([]commit.Loaded, error) {
	loaded := make([]commit.Loaded, len(indices))
	sums := make([]dbadapter.Checksum, len(indices))
	places := make([]int64, len(indices))
	for i, index := range indices {
		places[i] = int64(index)
	}
	err := read(func(rows pgx.Rows) error {
		var place, stored int64
		var key, head, value []byte
		if err := rows.Scan(&place, &key, &stored, &head, &value); err != nil {
			return err
		}
		i, ok := slices.BinarySearch(indices, dbadapter.Index(place))
		if !ok {
			return fmt.Errorf("the database returns index %d, which was not asked for", place)
		}
		l := &loaded[i]
		sum, err := unsealSum(n.Number, indices[i], stored)
		var r dbadapter.Hashed
		if err == nil {
			r, err = readRecord(key, head, value, n.Hasher)
		}
		if err == nil && (r.Index != indices[i] || len(l.Held) > 0 && sum != sums[i]) {
			err = grouped.ErrStale(key)
		}
		if err != nil {
			l.Err = err
			return nil
		}
		l.Held, sums[i] = append(l.Held, commit.Held{Record: r}), sum
		return nil
	}, `SELECT idx, key, checksum, head, value FROM records WHERE namespace = $1 AND idx = ANY($2) ORDER BY idx, key`, n.Number, places)
	if err != nil {
		return nil, err
	}
	grouped.Verify(n.Hasher, loaded, sums)
	return loaded, nil
}

func (s *snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	clear(sums[:len(indices)])
	n := s.namespace
	for from := 0; from == 0 || from < len(indices); from += lookupPage {
		some := indices[from:min(len(indices), from+lookupPage)]
		at := make(map[int64][]int, len(some))
		places := make([]int64, 0, len(some))
		for i, index := range some {
			if at[int64(index)] == nil {
				places = append(places, int64(index))
			}
			at[int64(index)] = append(at[int64(index)], from+i)
		}
		slices.Sort(places) // neighbours are found in the same pages
		err := s.query(func(rows pgx.Rows) error {
			var place, stored int64
			if err := rows.Scan(&place, &stored); err != nil {
				return err
			}
			sum, err := unsealSum(n.Number, dbadapter.Index(place), stored)
			for _, i := range at[place] {
				sums[i] = sum
			}
			return err
		}, `SELECT idx, checksum FROM records WHERE namespace = $1 AND idx = ANY($2)`, n.Number, places)
		if err != nil {
			return fmt.Errorf("look up: %w", err)
		}
	}
	return nil
}

// lookupPage is how many indices one query looks up.
const lookupPage = 8192

func (s *snapshot) Bucket(index dbadapter.Index) ([]dbadapter.Hashed, error) {
	buckets, err := s.Buckets([]dbadapter.Index{index})
	if err != nil {
		return nil, err
	}
	return buckets[0], nil
}

func (s *snapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	buckets := make([][]dbadapter.Hashed, 0, len(indices))
	for part := range slices.Chunk(indices, lookupPage) {
		loaded, err := s.namespace.held(s.query, part)
		var some [][]dbadapter.Hashed
		if err == nil {
			some, err = grouped.Records(loaded)
		}
		if err != nil {
			return nil, fmt.Errorf("read buckets: %w", err)
		}
		buckets = append(buckets, some...)
	}
	return buckets, nil
}

func (s *snapshot) Close() error {
	s.namespace.Life.Closed(s)
	s.end()
	return nil
}

// end releases the view.
func (s *snapshot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		s.view.release()
		s.view = nil
	}
}
