package pebblekv

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// fromFiles reads a database that Pebble cannot open, since its list of tables, a marker,
// its options or a log is damaged, from the tables and logs that are in the folder. Of the
// entries of a key the one with the greatest sequence number is the newest, and removals
// have such numbers, too.
//
// That holds of the tables that are in use. After a crash the folder may also have tables
// that were merged already: there a key that was removed since may come back, or an older
// entry with a number, where that of the newest has been set to 0. So may what a bad block
// hid. Which tables were in use the list alone said, so that any entry may be an older
// one: the gap is the whole range of keys.
func (e Engine) fromFiles(ctx context.Context, dir string, s kv.Salvage, why error) (_ []kv.Gap, err error) {
	f := &fromFiles{options: e.options(), gaps: []kv.Gap{{Where: why.Error()}}}
	defer f.close()
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := file.Name()
		number, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSuffix(name, ".sst"), ".log"), 10, 64)
		if err != nil {
			continue // it is no table and no log
		}
		path := filepath.Join(dir, name)
		switch filepath.Ext(name) {
		case ".sst":
			err = f.table(ctx, path)
		case ".log":
			err = f.log(path, form{commits: true, number: uint32(number)})
		}
		if err != nil {
			return nil, err
		}
	}
	if len(f.heads) == 0 {
		return nil, why
	}
	return f.gaps, f.merge(ctx, s.Entry)
}

type fromFiles struct {
	options *pebble.Options
	gaps    []kv.Gap
	heads   versionHeads
	removed []removedRange
	closers []func() error
}

// version is an entry of a key, or its removal, at a sequence number.
type version struct {
	key     []byte
	seq     uint64
	removes bool
	value   []byte
}

// versions is a row of them, by key and, of one key, the newest first. nil: its end.
type versions func() (*version, error)

// removedRange removes the keys from one up to another that are older.
type removedRange struct {
	from, to []byte
	seq      uint64
}

func (f *fromFiles) close() {
	for _, c := range f.closers {
		_ = c() // read only
	}
}

// bad notes a file of which some was not read.
func (f *fromFiles) bad(path string, err error) error {
	if !damage.Is(err) {
		return fmt.Errorf("read the file %s: %w", filepath.Base(path), err)
	}
	f.gaps = append(f.gaps, kv.Gap{Where: fmt.Sprintf("the file %s: %v", filepath.Base(path), err)})
	return nil
}

func (f *fromFiles) add(next versions) error {
	first, err := next()
	if first != nil {
		heap.Push(&f.heads, versionHead{first, next})
	}
	return err
}

// table takes up a table, up to its first bad block.
func (f *fromFiles) table(ctx context.Context, path string) (err error) {
	file, err := boundedFS{vfs.Default}.Open(path)
	if err != nil {
		return err
	}
	opened := func() (r *sstable.Reader, it sstable.Iterator, err error) {
		defer damage.Recovered(path, &err)
		readable, err := sstable.NewSimpleReadable(file)
		if err != nil {
			return nil, nil, errors.Join(err, file.Close())
		}
		if r, err = sstable.NewReader(ctx, readable, f.options.MakeReaderOptions()); err != nil {
			return nil, nil, errors.Join(err, readable.Close())
		}
		f.closers = append(f.closers, r.Close)
		if err := f.ranges(ctx, r); err != nil {
			return nil, nil, err
		}
		it, err = r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		return r, it, err
	}
	_, it, err := opened()
	if err != nil {
		return f.bad(path, err)
	}
	f.closers = slices.Insert(f.closers, len(f.closers)-1, it.Close)
	started, ended := false, false
	read := func() (v *version, err error) {
		defer damage.Recovered(path, &err)
		entry := it.Next
		if !started {
			started, entry = true, it.First
		}
		e := entry()
		if e == nil {
			return nil, it.Error()
		}
		value, _, err := e.Value(nil)
		if err != nil {
			return nil, err
		}
		return f.version(bytes.Clone(e.K.UserKey), uint64(e.K.SeqNum()), e.K.Kind(), bytes.Clone(value))
	}
	return f.add(func() (*version, error) {
		if ended {
			return nil, nil
		}
		v, err := read()
		if ended = v == nil; err != nil {
			return nil, f.bad(path, err)
		}
		return v, nil
	})
}

func (f *fromFiles) version(key []byte, seq uint64, kind pebble.InternalKeyKind, value []byte) (*version, error) {
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		return &version{key: key, seq: seq, value: value}, nil
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindDeleteSized, pebble.InternalKeyKindSingleDelete:
		return &version{key: key, seq: seq, removes: true}, nil
	}
	return nil, fmt.Errorf("an entry is of the kind %s, of which this program writes none", kind)
}

// ranges takes up what a table removes by ranges of keys.
func (f *fromFiles) ranges(ctx context.Context, r *sstable.Reader) error {
	it, err := r.NewRawRangeDelIter(ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if it == nil || err != nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		for _, k := range span.Keys {
			f.removed = append(f.removed, removedRange{bytes.Clone(span.Start), bytes.Clone(span.End), uint64(k.SeqNum())})
		}
	}
	return err
}

// log takes up a log of commits, each of which stands there whole: also those behind one
// that is damaged.
func (f *fromFiles) log(path string, form form) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at, clean := form.end(b); !clean && len(bytes.Trim(b[at:], "\x00")) > 0 {
		if err := f.bad(path, fmt.Errorf("it ends at %d in the midst of a record, or is damaged there", at)); err != nil {
			return err
		}
	}
	var all []*version
	for _, batch := range form.records(b) {
		h, ok := batchrepr.ReadHeader(batch)
		if !ok {
			continue // it says that logs end, or begin
		}
		seq := uint64(h.SeqNum)
		r := batchrepr.Read(batch)
		for {
			kind, key, value, ok, err := r.Next()
			if err != nil {
				if err := f.bad(path, err); err != nil {
					return err
				}
			}
			if !ok || err != nil {
				break
			}
			switch kind {
			case pebble.InternalKeyKindLogData:
				continue // it has no number
			case pebble.InternalKeyKindRangeDelete:
				f.removed = append(f.removed, removedRange{bytes.Clone(key), bytes.Clone(value), seq})
			default:
				v, err := f.version(bytes.Clone(key), seq, kind, bytes.Clone(value))
				if err != nil {
					return f.bad(path, err)
				}
				all = append(all, v)
			}
			seq++
		}
	}
	slices.SortFunc(all, func(a, b *version) int { return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq)) })
	return f.add(func() (*version, error) {
		if len(all) == 0 {
			return nil, nil
		}
		v := all[0]
		all = all[1:]
		return v, nil
	})
}

// records are what a log has in whole records, also behind damage.
func (f form) records(b []byte) (all [][]byte) {
	var parts []byte
	begun := false
	for at := 0; at < len(b); {
		end, _, ok := f.chunk(b, at)
		if !ok {
			at, begun = at+1, false // where a block ends, or something is damaged
			continue
		}
		size, kind := f.header(b[at+6])
		body := b[at+size : end]
		switch at = end; kind {
		case kindWhole:
			all, begun = append(all, body), false
		case kindFirst:
			parts, begun = bytes.Clone(body), true
		default:
			if !begun {
				continue
			}
			if parts = append(parts, body...); kind == kindLast {
				all, begun = append(all, parts), false
			}
		}
	}
	return all
}

func (f *fromFiles) merge(ctx context.Context, entry func(key, value []byte) error) error {
	var last []byte
	seen := false
	for n := 0; len(f.heads) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := f.heads[0].version
		following, err := f.heads[0].next()
		if err != nil {
			return err
		}
		if following != nil {
			f.heads[0].version = following
			heap.Fix(&f.heads, 0)
		} else {
			heap.Pop(&f.heads)
		}
		if seen && bytes.Equal(at.key, last) {
			continue // it is older
		}
		last, seen = at.key, true
		if at.removes || f.isRemoved(at) {
			continue
		}
		if err := entry(at.key, at.value); err != nil {
			return err
		}
	}
	return nil
}

func (f *fromFiles) isRemoved(v *version) bool {
	return slices.ContainsFunc(f.removed, func(r removedRange) bool {
		return r.seq > v.seq && bytes.Compare(v.key, r.from) >= 0 && bytes.Compare(v.key, r.to) < 0
	})
}

type versionHead struct {
	*version
	next versions
}

type versionHeads []versionHead

func (h versionHeads) Len() int { return len(h) }
func (h versionHeads) Less(a, b int) bool {
	if order := bytes.Compare(h[a].key, h[b].key); order != 0 {
		return order < 0
	}
	return h[a].seq > h[b].seq
}
func (h versionHeads) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *versionHeads) Push(x any)   { *h = append(*h, x.(versionHead)) }
func (h *versionHeads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
