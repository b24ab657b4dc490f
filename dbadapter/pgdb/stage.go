package pgdb

import (
	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// The statements of a commit take columns, so that a batch of any length is one of
// each.
const (
	putRecords = `
INSERT INTO records (namespace, key, idx, checksum, head, value)
SELECT $1, r.* FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[]) r
ON CONFLICT (namespace, key) DO UPDATE
SET idx = excluded.idx, checksum = excluded.checksum, head = excluded.head, value = excluded.value`
	markNeighbours = `
UPDATE records SET checksum = n.checksum FROM unnest($2::bytea[], $3::bigint[]) n (key, checksum)
WHERE records.namespace = $1 AND records.key = n.key`
	removeRecords = `DELETE FROM records WHERE namespace = $1 AND key = ANY($2)`
	putLog        = `INSERT INTO log (namespace, last, entry) SELECT $1, l.* FROM unnest($2::bigint[], $3::bytea[]) l`
	putMeta       = `UPDATE namespaces SET head = $2 WHERE number = $1`
)

// stage queues the statements of a part. It may be called again.
func stage(b *pgx.Batch, p *part) {
	n, m := p.Namespace, &p.Meta
	p.Count(n.Meta)
	var keys, heads, values, near, gone [][]byte
	var indices, sums, nearSums []int64
	for i, bucket := range p.Group.Touched() {
		sum := sealSum(n.Number, bucket.Index, p.Changes[i].New)
		for j := range bucket.Held {
			held := &bucket.Held[j]
			if held.Item == nil { // its bucket has another checksum now
				near, nearSums = append(near, held.Record.Key), append(nearSums, sum)
				continue
			}
			keys, heads = append(keys, held.Record.Key), append(heads, held.Item.Stored)
			indices, sums = append(indices, int64(bucket.Index)), append(sums, sum)
			values = append(values, present(held.Record.Value))
		}
		for _, held := range bucket.Removed() {
			gone = append(gone, held.Record.Key)
		}
	}
	if len(gone) > 0 {
		b.Queue(removeRecords, n.Number, gone)
	}
	if len(keys) > 0 {
		b.Queue(putRecords, n.Number, keys, indices, sums, heads, values)
	}
	if len(near) > 0 {
		b.Queue(markNeighbours, n.Number, near, nearSums)
	}
	n.stageKept(b, &m.Kept, p.Group.Leavers())
	var lasts []int64
	var entries [][]byte
	for some := range layout.LogEntries(p.Changes) {
		lasts = append(lasts, int64(some[len(some)-1].Seq))
		entries = append(entries, layout.AppendLogEntry(nil, n.Number, some))
	}
	b.Queue(putLog, n.Number, lasts, entries)
	b.Queue(putMeta, n.Number, m.Encode(n.Number))
}

// Encode gives each item its stored head, and a key of its own: a change that is
// handed to an observer stays valid. It returns what the batch weighs.
func (n *namespace) Encode(items []commit.Item) (size int) {
	bytes := 0
	for i := range items {
		bytes += len(items[i].Record.Key) + layout.HeadSize(&items[i].Record.Record)
	}
	b := make([]byte, 0, bytes)
	for i := range items {
		it, start := &items[i], len(b)
		size += it.Record.Weight()
		b = append(b, it.Record.Key...)
		it.Record.Key = b[start:len(b):len(b)]
		if it.Action.Removes() {
			continue
		}
		start = len(b)
		b = layout.AppendHead(b, &it.Record, 0)
		it.Stored = b[start:len(b):len(b)]
	}
	return size
}

// present is a value that is not NULL.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
