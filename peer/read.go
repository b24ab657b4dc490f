package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
)

// Get returns the record under a key. ErrNotFound: the key holds no record. ErrDeleted,
// ErrExpired: it holds a tombstone, or a record that has expired by this machine's clock. The
// record that is returned with the error tells its version. ErrTooFew, in a namespace that is
// cut into shards: fewer hosts have answered than the level takes. Without a Read option the
// level is Quorum. The record that is returned with the error is what was found.
func (ns *Namespace) Get(ctx context.Context, key []byte, options ...GetOption) (dbadapter.Record, error) {
	if err := ns.enter("get"); err != nil {
		return dbadapter.Record{}, err
	}
	defer ns.gate.leave()
	if err := ctx.Err(); err != nil {
		return dbadapter.Record{}, err
	}
	o, err := readOptions(options)
	if err == nil && o.set && ns.core.Rule() == nil {
		err = fmt.Errorf("%w: the namespace is not cut into shards, and each member reads its own copy: leave the level out", ErrInvalid)
	}
	var rec dbadapter.Record
	switch {
	case err != nil:
	case ns.core.Rule() != nil:
		rec, err = ns.getRouted(ctx, key, o.GetOptions)
	default:
		rec, err = ns.get(key)
		if at := o.GetOptions.AtLeast; rec.Version.Compare(at) < 0 && (err == nil || errors.Is(err, ErrNotFound)) {
			err = fmt.Errorf("%w: this node does not hold version %s yet", ErrTooFew, at)
		}
	}
	if rec.Version.IsZero() {
		err = ns.orRemoved(err)
	}
	if err != nil {
		return rec, fmt.Errorf("get %q in %s: %w", clip(key), ns.Name(), err)
	}
	return rec, nil
}

// orRemoved is why hosts do not answer: where this node is no member any more, that.
func (ns *Namespace) orRemoved(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return cmp.Or(ns.core.Outside(), err)
	}
	return err
}

func (ns *Namespace) get(key []byte) (dbadapter.Record, error) {
	sh, err := ns.shardOf(key)
	if err != nil {
		return dbadapter.Record{}, err
	}
	snap, err := sh.set.Store.Snapshot()
	if err != nil {
		return dbadapter.Record{}, err
	}
	defer snap.Close()
	rec, err := snap.Get(key)
	if errors.Is(err, ErrNotFound) {
		err = ErrNotFound // the store's error names the key, and so does this one
	}
	if err == nil {
		err = ns.core.Absent(&rec)
	}
	return rec, err
}

// ScanOption narrows or widens a scan.
type ScanOption func(*scan)

type scan = shards.ScanOptions

// scanBytes of pages wait to be read, of all shards of a scan.
const scanBytes = 16 << 20

// After starts the scan beyond a key, which need not exist.
func After(key []byte) ScanOption { return func(s *scan) { s.After = key } }

// WithTombstones includes what reads as absent: deleted records, and those that
// have expired. Two namespaces that hold the same then yield the same, whatever
// their clocks say.
func WithTombstones() ScanOption { return func(s *scan) { s.Tombstones = true } }

// Sizes sets size to that of each record's value in bytes, before the record is yielded. A large value by
// placement writer is then not read, and left out of its record.
func Sizes(size *int) ScanOption { return func(s *scan) { s.Size = size } }

// Scan yields the records whose keys begin with prefix, by key, as they were when it began. An
// error ends it. In a namespace that is cut into shards, hosts are asked for those that this
// node does not hold. They are read page by page, as each page is when it is read. The error is
// ErrTooFew where no whole host of a shard can be reached. A scan After the last key goes on
// then, at this node or at another one. While the loop runs the namespace cannot finish closing:
// do not close it, or the node, inside the loop.
func (ns *Namespace) Scan(ctx context.Context, prefix []byte, options ...ScanOption) iter.Seq2[dbadapter.Record, error] {
	s := scan{Prefix: prefix, Room: scanBytes}
	for _, o := range options {
		o(&s)
	}
	return listed(ctx, ns, "scan", func(ctx context.Context) iter.Seq2[dbadapter.Record, error] {
		if ns.core.Rule() != nil {
			return ns.hosts.Scan(ctx, s)
		}
		all := shards.ScanSet(ctx, ns.shards()[0].set, &s)
		return func(yield func(dbadapter.Record, error) bool) {
			for rec, err := range all {
				if s.Size != nil {
					*s.Size = len(rec.Value)
				}
				if !yield(rec, err) {
					return
				}
			}
		}
	})
}

// GetOption says how a key is read.
type GetOption func(*getOptions)

type getOptions struct {
	shards.GetOptions
	set bool // a level is named
}

// Read reads at a level: One, Quorum or All.
func Read(l Level) GetOption {
	return func(o *getOptions) { o.Level, o.set = quorum.Level(l), true }
}

// AtLeast has further hosts asked until one has a version or a later one, or has collected up to
// it. What is written is read again so, whatever the level of the write.
func AtLeast(v dbadapter.Version) GetOption {
	return func(o *getOptions) { o.GetOptions.AtLeast = v }
}

func readOptions(options []GetOption) (o getOptions, err error) {
	for _, option := range options {
		option(&o)
	}
	if o.Level > quorum.One {
		return o, fmt.Errorf("%w: a read is at level one, quorum or all", ErrInvalid)
	}
	return o, nil
}

// lookUp finds the record under a key of a namespace that is cut into shards, at its hosts.
func (ns *Namespace) lookUp(ctx context.Context, key []byte, o shards.GetOptions) (shards.Found, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	found, err := ns.hosts.Get(ctx, key, o)
	ns.node.metrics.LookedUp(found.Requests, err)
	return found, err
}

// getRouted is Get in a namespace that is cut into shards.
func (ns *Namespace) getRouted(ctx context.Context, key []byte, o shards.GetOptions) (rec dbadapter.Record, err error) {
	found, err := ns.lookUp(ctx, key, o)
	if found.Record != nil {
		rec = *found.Record
	}
	switch {
	case err != nil:
		return rec, err
	case found.Record == nil:
		return rec, ErrNotFound
	}
	return rec, ns.core.Absent(found.Record)
}
