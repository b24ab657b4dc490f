package damage

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
)

// Watched wraps the records of a namespace: met gets each error of theirs, whatever has
// met it, and what it returns is returned.
func Watched(store dbadapter.Namespace, met func(error) error) dbadapter.Namespace {
	return watched{store, met}
}

type watched struct {
	dbadapter.Namespace
	met func(error) error
}

func (w watched) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	outcomes, err := w.Namespace.Apply(ctx, writes)
	return outcomes, w.met(err)
}

func (w watched) Snapshot() (dbadapter.Snapshot, error) {
	s, err := w.Namespace.Snapshot()
	if err != nil {
		return nil, w.met(err)
	}
	return watchedSnapshot{s, w.met}, nil
}

func (w watched) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return watchedSeq(w.Namespace.Changes(ctx, after), w.met)
}

func (w watched) SaveSummary(ctx context.Context, seq uint64, summary []byte) error {
	return w.met(w.Namespace.SaveSummary(ctx, seq, summary))
}

func (w watched) Summary(ctx context.Context) (uint64, []byte, error) {
	seq, summary, err := w.Namespace.Summary(ctx)
	return seq, summary, w.met(err)
}

func (w watched) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	return w.met(w.Namespace.Raise(ctx, to))
}

func (w watched) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	return w.met(w.Namespace.Lower(ctx, to))
}

func (w watched) Kept(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return watchedSeq(w.Namespace.Kept(ctx), w.met)
}

func (w watched) Forget(ctx context.Context, seqs ...uint64) error {
	return w.met(w.Namespace.Forget(ctx, seqs...))
}

type watchedSnapshot struct {
	dbadapter.Snapshot
	met func(error) error
}

func (w watchedSnapshot) Get(key []byte) (dbadapter.Record, error) {
	r, err := w.Snapshot.Get(key)
	return r, w.met(err)
}

func (w watchedSnapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return watchedSeq(w.Snapshot.Scan(ctx, prefix, after), w.met)
}

func (w watchedSnapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	return w.met(w.Snapshot.Lookup(indices, sums))
}

func (w watchedSnapshot) Bucket(index dbadapter.Index) ([]dbadapter.Hashed, error) {
	bucket, err := w.Snapshot.Bucket(index)
	return bucket, w.met(err)
}

func (w watchedSnapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	buckets, err := w.Snapshot.Buckets(indices)
	return buckets, w.met(err)
}

func (w watchedSnapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return watchedSeq(w.Snapshot.Pairs(ctx, from, to), w.met)
}

func watchedSeq[V any](all iter.Seq2[V, error], met func(error) error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		all(func(v V, err error) bool {
			if err != nil {
				err = met(err)
			}
			return yield(v, err)
		})
	}
}
