package pgdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
)

// A log entry holds the changes of one commit, or a part of them, under the
// sequence number of the last one:
//
//	count(uvarint) { index(6) old(6) new(6) digest(32) records(varint) length(uvarint) key }…  seal(8)

// changeSize is the least that a change takes.
const changeSize = 3*numberSize + dbadapter.DigestSize + 2

// A log entry is bounded to some 80 KiB, however long the keys are.
const (
	logEntryChanges = 1024
	logEntryBytes   = 64 << 10
)

// logPage is how many entries one query reads.
const logPage = 64

// oneLogEntry is how many of the changes, from the first on, stand in one entry: at
// least one.
func oneLogEntry(changes []dbadapter.Change) int {
	size := 0
	for i := range changes {
		if size += changeSize + len(changes[i].Key); i > 0 && (i == logEntryChanges || size > logEntryBytes) {
			return i
		}
	}
	return len(changes)
}

func appendLogEntry(b []byte, number int32, changes []dbadapter.Change) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = append48(b, uint64(c.Index))
		b = append48(b, uint64(c.Old))
		b = append48(b, uint64(c.New))
		b = c.Delta.AppendBinary(b)
		b = binary.AppendVarint(b, int64(c.Records))
		b = binary.AppendUvarint(b, uint64(len(c.Key)))
		b = append(b, c.Key...)
	}
	return appendSeal(b, start, seed(number, kindLog, changes[len(changes)-1].Seq))
}

// readLogEntry decodes the changes of an entry, which refer to it.
func readLogEntry(b []byte, number int32, last uint64) ([]dbadapter.Change, error) {
	const what = "an entry of the change log"
	body, err := unseal(b, seed(number, kindLog, last), what)
	if err != nil {
		return nil, err
	}
	count, w := binary.Uvarint(body)
	rest := body[max(w, 0):]
	if w <= 0 || count == 0 || count > last || count > uint64(len(rest)/changeSize) {
		return nil, corrupt(what, "it has %d bytes", len(body))
	}
	changes := make([]dbadapter.Change, count)
	for i := range changes {
		c := &changes[i]
		c.Seq = last - (count - 1 - uint64(i))
		if rest, err = readChange(rest, c); err != nil {
			return nil, corrupt(what, "%v", err)
		}
	}
	if len(rest) > 0 {
		return nil, corrupt(what, "something stands behind its end")
	}
	return changes, nil
}

// readChange takes a change off the bytes of a log entry.
func readChange(b []byte, c *dbadapter.Change) (rest []byte, err error) {
	if len(b) < changeSize {
		return nil, fmt.Errorf("it is cut short")
	}
	c.Index = dbadapter.Index(read48(b))
	c.Old = dbadapter.Checksum(read48(b[numberSize:]))
	c.New = dbadapter.Checksum(read48(b[2*numberSize:]))
	c.Delta = dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[3*numberSize:]))
	b = b[3*numberSize+dbadapter.DigestSize:]
	records, w := binary.Varint(b)
	if w <= 0 {
		return nil, fmt.Errorf("it is cut short")
	}
	b = b[w:]
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, fmt.Errorf("a key goes past its end")
	}
	c.Records, c.Key = int(records), b[w:w+int(n):w+int(n)]
	return b[w+int(n):], nil
}

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return func(yield func(dbadapter.Change, error) bool) {
		s, err := n.snapshot("read the change log")
		if err != nil {
			yield(dbadapter.Change{}, err)
			return
		}
		defer s.Close()
		if err := s.changes(ctx, after, func(c dbadapter.Change) bool { return yield(c, nil) }); err != nil {
			yield(dbadapter.Change{}, fmt.Errorf("read the change log after %d: %w", after, err))
		}
	}
}

// changes yields the log after a sequence number, and fails if a change is
// missing.
func (s *snapshot) changes(ctx context.Context, after uint64, yield func(dbadapter.Change) bool) error {
	n, end := s.namespace, s.meta.seq
	if after >= end {
		return nil
	}
	if after+1 < s.meta.first {
		return fmt.Errorf("%w: it begins with %d; scan the records instead", dbadapter.ErrTrimmed, s.meta.first)
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
			changes, err := readLogEntry(entry, n.number, uint64(last))
			if err != nil {
				return err
			}
			if changes[0].Seq > read || uint64(last) < read {
				return corrupt("the change log", "change %d is missing", read)
			}
			page = append(page, changes[read-changes[0].Seq:]...)
			read = uint64(last) + 1
			return nil
		}, `SELECT last, entry FROM log WHERE namespace = $1 AND last >= $2 ORDER BY last LIMIT $3`, n.number, int64(next), logPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return corrupt("the change log", "it ends with %d, not %d", next-1, end)
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

// trim removes the oldest changes once the log is an eighth longer than it
// must be, so that the cost of removing an entry is paid once, in bulk. It runs
// on the queue's goroutine.
func (w *writer) trim(n *namespace) error {
	need := uint64(n.store.options.LogLimit)
	if n.meta.summary > 0 {
		need = min(dbadapter.LogReach*need, max(need, n.meta.seq-(n.meta.summary-1)))
	}
	if held := n.meta.seq + 1 - n.meta.first; held <= need+need/8 {
		return nil
	}
	m := n.meta
	var last int64 // the last entry that nothing needs
	err := w.query(func(rows pgx.Rows) error { return rows.Scan(&last) },
		`SELECT last FROM log WHERE namespace = $1 AND last < $2 ORDER BY last DESC LIMIT 1`, n.number, int64(m.seq+1-need))
	if err != nil || last == 0 {
		return err
	}
	m.first = uint64(last) + 1
	return n.change(m, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM log WHERE namespace = $1 AND last <= $2`, n.number, last)
	})
}

// SaveSummary keeps a summary, in one transaction that takes the place of the one
// before; see dbadapter.Namespace.
func (n *namespace) SaveSummary(ctx context.Context, seq uint64, summary []byte) error {
	if err := dbadapter.CheckSummary(summary); err != nil {
		return err
	}
	return n.do(ctx, "save a summary", func() error {
		m := n.meta
		if seq > m.seq || seq == math.MaxUint64 {
			return fmt.Errorf("it is as of change %d, and the last change is %d", seq, m.seq)
		}
		m.summary = seq + 1
		sealed := appendSeal(append([]byte{}, summary...), 0, seed(n.number, kindSummary, seq))
		err := n.change(m, func(b *pgx.Batch) {
			b.Queue(`INSERT INTO summaries (namespace, seq, summary) VALUES ($1, $2, $3)
				ON CONFLICT (namespace) DO UPDATE SET seq = excluded.seq, summary = excluded.summary`, n.number, int64(seq), sealed)
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
	if s.meta.summary == 0 {
		return 0, nil, fmt.Errorf("%s: %w", what, dbadapter.ErrNotFound)
	}
	seq := s.meta.summary - 1
	var sealed []byte
	err = s.query(func(rows pgx.Rows) error { return rows.Scan(&sealed) },
		`SELECT summary FROM summaries WHERE namespace = $1`, n.number)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", what, err)
	}
	summary, err := unseal(sealed, seed(n.number, kindSummary, seq), "the summary")
	return seq, summary, err
}
