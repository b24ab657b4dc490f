package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer the value of a record begins with a tag, and a large one is a body (package bodies).
// Users' values become those of records here, and the other way round: callers of Shards give and get
// users' values.

// bodyWait is how long a host is waited for that is asked for a body, before the next one is.
const bodyWait = 2 * time.Second

// errMissing: hosts that have answered lack the body, and others have not answered.
var errMissing = fmt.Errorf("%w: those that have do not have the value's body", ErrTooFew)

// reserved reports whether a key is that of a body or of a hint.
func reserved(ns *node.Namespace, key []byte) bool { return ns.Bodied() && bodies.Reserved(key) }

// CheckKey says why a user's key is none, or nil.
func (s *Shards) CheckKey(key []byte) error {
	switch {
	case reserved(s.NS, key):
		return fmt.Errorf("%w: key %q begins with a zero byte, which placement writer keeps for itself: choose another key", node.ErrInvalid, key)
	case s.NS.Bodied() && len(key) > dbadapter.MaxKey-bodies.KeyRoom:
		return fmt.Errorf("%w: a key of %d bytes: at most %d by placement writer", dbadapter.ErrLimit, len(key), dbadapter.MaxKey-bodies.KeyRoom)
	}
	return nil
}

// large reports whether a value is to be a body.
func (s *Shards) large(value []byte) bool { return len(value) > s.NS.Rule().Inline }

// putValues writes drafts with users' values.
func (s *Shards) putValues(ctx context.Context, drafts []node.Draft, o PutOptions) (Written, error) {
	drafts = slices.Clone(drafts)
	var body []byte
	for i := range drafts {
		d := &drafts[i]
		err := s.CheckKey(d.Record.Key)
		if err == nil {
			err = d.Record.Validate()
		}
		if err == nil {
			err = d.CheckTTL()
		}
		switch {
		case err != nil:
		case d.Record.Deleted:
		case !s.large(d.Record.Value):
			d.Record.Value = bodies.Inline(d.Record.Value)
		case len(drafts) > 1:
			err = fmt.Errorf("%w: a batch has values of at most %d bytes by placement writer: put large values one by one", node.ErrInvalid, s.NS.Rule().Inline)
		default:
			body = d.Record.Value
		}
		if err != nil {
			return Written{}, &node.ItemError{Item: i, Err: err}
		}
	}
	if body == nil {
		return s.put(ctx, drafts, o, nil)
	}
	key := drafts[0].Record.Key
	var p *bodies.Pointer
	var record dbadapter.Record
	o.made = func(records []dbadapter.Record) { record = records[0] }
	written, err := s.put(ctx, drafts, o, func() (err error) {
		if p, err = s.putBody(ctx, key, body, o.Level); err == nil {
			drafts[0].Record.Value = p.AppendBinary(nil)
		}
		return err
	})
	if err == nil && p.Shard != s.NS.Home(key) {
		s.Net.Outlive(func(ctx context.Context) { s.hint(ctx, p.Shard, &record) })
	}
	return written, err
}

// putBody writes the body of a value, and points to it. The error says that nothing is written under the
// key. A request ends long before a writer is to give up. (bodies, 3)
func (s *Shards) putBody(ctx context.Context, key, value []byte, level quorum.Level) (*bodies.Pointer, error) {
	p := newBody(s.NS, key, value)
	return p, s.sendBody(ctx, p, key, value, level)
}

// sendBody writes the body that a pointer names.
func (s *Shards) sendBody(ctx context.Context, p *bodies.Pointer, key, value []byte, level quorum.Level) error {
	_, err := s.put(ctx, []node.Draft{{Record: dbadapter.Record{Key: p.Key(key), Value: value}}}, PutOptions{Level: level}, nil)
	if errors.Is(err, ErrUnconfirmed) {
		err = fmt.Errorf("%w: nothing is written under the key: its value, in shard %d: %s", ErrTooFew, p.Shard, err.Error()) // it is not confirmed, and nobody reads it
	}
	return err
}

// hint gives the hosts of bodies in a shard the records of other shards that point to them, dated as those. One that is not
// taken is missed by no read but one at level one, which then asks the key's shard.
func (s *Shards) hint(ctx context.Context, shard placement.Shard, records ...*dbadapter.Record) {
	over, seen := s.Net.Now()+Patience, make([][]*dbadapter.Record, len(records))
	items := make([]node.Item, len(records))
	for i, r := range records {
		items[i] = node.Item{Key: bodies.HintKey(shard, r.Key), Value: wire.AppendPushed(nil, r), Time: r.Version.Clock.Time()}
	}
	_, _ = anew(ctx, s, shard, over, func(a *Asker) (Written, error) {
		hints, err := a.MakeItems(items, seen)
		if err != nil {
			return Written{}, err
		}
		w := &write{Shards: s, drafts: make([]node.Draft, len(items)), seen: seen, over: over, shard: shard, records: hints}
		return w.offer(ctx, a)
	})
}

// getValue reads a key with its user's value. Where the body that its record names is missing, the record
// is read again, at quorum: it may have been overwritten.
func (s *Shards) getValue(ctx context.Context, key []byte, o GetOptions, over time.Duration) (Found, error) {
	var named *bodies.Pointer
	before := 0
	if o.Level == quorum.One && o.AtLeast.IsZero() {
		if where, shard := s.Locate(key); where == locator.In {
			found, is := s.near(ctx, key, shard, over)
			if is {
				return found, nil
			}
			before = found.Requests
		}
	}
	for {
		found, short := s.get(ctx, key, o, over)
		found.Requests += before
		before = found.Requests
		if found.Record == nil {
			return found, short
		}
		record, p, err := s.opened(found.Record)
		if p != nil {
			var asked int
			record.Value, asked, err = s.body(ctx, key, p, over)
			found.Requests += asked
			before = found.Requests
		}
		switch {
		case err == nil:
			found.Record = record
			return found, short
		case short != nil || p == nil || named != nil && *named == *p:
			found.Record = nil
			if short == nil {
				short = err
			}
			return found, short
		}
		if named = p; o.Level == quorum.One {
			o.Level = quorum.Quorum
		}
	}
}

// opened is a record with its user's value, and where that is, if it is a body. What has expired has none.
func (s *Shards) opened(r *dbadapter.Record) (*dbadapter.Record, *bodies.Pointer, error) {
	if r.Deleted {
		return r, nil, nil
	}
	value, p, err := bodies.Read(r.Value)
	if err == nil && p != nil && int(p.Shard) >= s.NS.Rule().Shards {
		err = bodies.ErrValue
	}
	if err != nil {
		return r, nil, fmt.Errorf("%w: the record of %q: %w", dbadapter.ErrCorrupt, r.Key, err)
	}
	open := *r
	open.Value = value
	if s.NS.Absent(r) != nil {
		p = nil
	}
	return &open, p, nil
}

// Value is the user's value of a record as hosts hold it, such as an entry of a kept log. ErrTooFew, bodies.ErrLost: as of Get.
func (s *Shards) Value(ctx context.Context, r *dbadapter.Record) ([]byte, error) {
	if !s.NS.Bodied() {
		return r.Value, nil
	}
	open, p, err := s.opened(r)
	if err != nil || p == nil {
		return open.Value, err
	}
	ctx, cut, over := s.begin(ctx)
	defer cut()
	value, _, err := s.body(ctx, r.Key, p, over)
	return value, err
}

// body reads the body that a pointer names, at the nearest host that has it. bodies.ErrLost: each member that
// may hold it has answered, and has none that proves itself.
func (s *Shards) body(ctx context.Context, key []byte, p *bodies.Pointer, over time.Duration) (value []byte, asked int, err error) {
	name := p.Key(key)
	proves := func(r *dbadapter.Record) bool { return r != nil && !r.Deleted && p.Proves(r.Value) }
	found, _ := s.get(ctx, name, GetOptions{Level: quorum.One}, over) // another host may have what the nearest one lacks
	if asked = found.Requests; proves(found.Record) {
		return found.Record.Value, asked, nil
	}
	if ctx.Err() != nil {
		return nil, asked, context.Cause(ctx)
	}
	value, err = anew(ctx, s, p.Shard, over, func(a *Asker) ([]byte, error) {
		hosts := a.Row().Hosts()
		why := map[node.ID]error{}
		for _, id := range s.NS.MayHold(p.Shard) { // they answer only as hosts
			if !slices.Contains(hosts, id) {
				why[id] = errSilent
			}
		}
		for _, id := range s.nearest(hosts) {
			if !s.NS.Admits(id) {
				continue
			}
			asked++
			h, err := askSoon(ctx, s, a, id, min(over, s.Net.Now()+bodyWait), a.record(name, false))
			switch {
			case !a.Current():
				return nil, errRow
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, node.ErrDeclined) && !errors.Is(err, node.ErrDenied): // what it has is no body
			case err != nil:
				why[id] = err
			case proves(h.Record):
				return h.Record.Value, nil
			}
		}
		if len(why) > 0 {
			return nil, fmt.Errorf("%w (%s)", errMissing, words(why))
		}
		return nil, bodies.ErrLost
	})
	return value, asked, err
}

// A scan or a watch reads so many bodies at once, of so many bytes, unless one is larger.
const (
	bodiesAhead = 8
	bytesAhead  = 2 << 20
	// recordsAhead wait behind a body that is being read.
	recordsAhead = 256
)

// opening is an element whose record's value is read ahead; wait gives what the key holds now.
type opening[T any] struct {
	e    T
	size int
	wait func() (*dbadapter.Record, error)
}

// openAll yields elements in order, each with its record as it is, or as the key holds it now where that
// names no body that could be read; with user's values. Bodies are read ahead. It goes on for so long where
// too few hosts answer.
func openAll[T any](ctx context.Context, s *Shards, all iter.Seq2[T, error], patience time.Duration, record func(*T) *dbadapter.Record, yield func(*T, *dbadapter.Record, error) bool) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	var queue []opening[T]
	read, bytes := 0, 0 // of the queue
	next := func() bool {
		first := queue[0]
		queue = queue[1:]
		if first.size > 0 {
			read, bytes = read-1, bytes-first.size
		}
		now, err := first.wait()
		return yield(&first.e, now, err)
	}
	for e, err := range all {
		o := opening[T]{e: e, wait: func() (*dbadapter.Record, error) { return record(&e), err }}
		if r := record(&e); err == nil && r != nil && s.NS.Bodied() {
			open, p, err := s.opened(r)
			o.wait = func() (*dbadapter.Record, error) { return open, err }
			if p != nil {
				o.size = int(p.Size)
				read, bytes = read+1, bytes+o.size
				own := r.Clone()
				wait := beside(ctx, s, func(ctx context.Context) (*dbadapter.Record, error) { return s.now(ctx, &own, patience) })
				o.wait = func() (*dbadapter.Record, error) { return wait(forever) }
			}
		}
		queue = append(queue, o)
		for len(queue) > 0 && (read == 0 || read > bodiesAhead || read > 1 && bytes > bytesAhead || len(queue) > recordsAhead) {
			if !next() {
				return
			}
		}
	}
	for len(queue) > 0 {
		if !next() {
			return
		}
	}
}

// now is what the key of a record holds: the record itself with its value, while its body is there.
func (s *Shards) now(ctx context.Context, r *dbadapter.Record, patience time.Duration) (*dbadapter.Record, error) {
	since := s.Net.Now()
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		over := s.Net.Now() + Patience
		open, p, err := s.opened(r)
		if p != nil {
			open.Value, _, err = s.body(ctx, r.Key, p, over)
		}
		if err == nil {
			return open, nil
		}
		found, failed := s.getValue(ctx, r.Key, GetOptions{Level: quorum.Quorum}, over)
		switch {
		case failed == nil && (found.Record == nil || found.Record.Version.Compare(r.Version) >= 0):
			return found.Record, nil
		case failed != nil:
			err = failed
		}
		if !errors.Is(err, ErrTooFew) || s.Net.Now()-since >= patience || s.Net.Sleep(ctx, pause) != nil {
			return nil, fmt.Errorf("the value of %q: %w", r.Key, err)
		}
	}
}

// values yields the records of a scan with users' values.
func (s *Shards) values(ctx context.Context, records iter.Seq2[dbadapter.Record, error], o *ScanOptions) iter.Seq2[dbadapter.Record, error] {
	return func(yield func(dbadapter.Record, error) bool) {
		if o.Size != nil {
			for r, err := range records {
				if err == nil {
					r, err = s.sized(r, o.Size)
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
			return
		}
		lost := 0
		var first []byte
		more := true
		openAll(ctx, s, records, 0, func(r *dbadapter.Record) *dbadapter.Record { return r }, func(r, now *dbadapter.Record, err error) bool {
			switch {
			case errors.Is(err, bodies.ErrLost): // the others are given before that is told
				if lost++; lost == 1 {
					first = bytes.Clone(r.Key)
				}
				return true
			case err != nil:
				more = false
				yield(dbadapter.Record{}, err)
				return false
			case now == nil, now.Version != r.Version && !o.Tombstones && s.NS.Absent(now) != nil:
				return true
			}
			more = yield(*now, nil)
			return more
		})
		if more && lost > 0 {
			yield(dbadapter.Record{}, fmt.Errorf("%w: the value of %q, and those of %d other keys; all that is left was given", bodies.ErrLost, first, lost-1))
		}
	}
}

// sized is a record without a value that is a body, and the size of its value.
func (s *Shards) sized(r dbadapter.Record, size *int) (dbadapter.Record, error) {
	if *size = s.NS.Size(&r); !s.NS.Bodied() {
		return r, nil
	}
	open, _, err := s.opened(&r)
	if err != nil {
		return r, err
	}
	return *open, nil
}
