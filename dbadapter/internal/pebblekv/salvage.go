package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Salvage reads the database up to a damaged block, and goes on behind it. Pebble says
// neither where the block begins nor what else it knows of its keys, so that all
// entries between the last key before it and the first one behind it, in the damaged
// table, are a gap, whatever table they are in. A damaged log is read up to the damage.
// Where Pebble opens nothing, since its list of tables, a marker or its options are damaged,
// nothing is taken, and the gap is all keys: which tables are in use the list alone says.
func (e Engine) Salvage(ctx context.Context, dir string, s kv.Salvage) (_ []kv.Gap, err error) {
	defer damage.Recovered("database", &err)
	e.NoSync = true // do not look at the logs
	opened, err := e.openToRead(dir, s.Closed)
	if logs := probeLogs(dir, s.Closed); errors.Is(err, dbadapter.ErrCorrupt) && errors.Is(logs, dbadapter.ErrCorrupt) {
		cut := filepath.Join(dir, kv.SalvageDir)
		defer func() { err = errors.Join(err, os.RemoveAll(cut)) }()
		if failed := errors.Join(os.RemoveAll(cut), os.Mkdir(cut, durable.DirMode), cutLogs(dir, cut)); failed != nil {
			return nil, failed
		}
		opened, err = e.openToRead(cut, s.Closed)
	}
	if errors.Is(err, dbadapter.ErrCorrupt) {
		return []kv.Gap{{Where: err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	d := &db{pebble: opened, dir: dir}
	defer func() { err = errors.Join(err, d.Close()) }()
	bad, found := d.damaged(ctx)
	if found != nil && bad == nil {
		return nil, found
	}
	slices.SortFunc(bad, func(a, b pebble.SSTableInfo) int { return bytes.Compare(a.Largest.UserKey, b.Largest.UserKey) })
	v := &salvager{db: d, bad: bad}
	if err := probeLogs(dir, s.Closed); errors.Is(err, dbadapter.ErrCorrupt) {
		v.gaps = append(v.gaps, kv.Gap{Where: err.Error()})
	} else if err != nil {
		return nil, err
	}
	err = v.run(ctx, s.Entry)
	return v.gaps, err
}

// cutLogs makes a second folder of a database, whose logs end at the first damage: Pebble
// opens nothing with a log that is damaged in its midst.
func cutLogs(dir, to string) error {
	files, err := os.ReadDir(dir) // by name: the logs by their numbers
	if err != nil {
		return err
	}
	whole := true
	for _, file := range files {
		name := file.Name()
		number, other := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64)
		if isLog := filepath.Ext(name) == ".log" && other == nil; !isLog && file.Type().IsRegular() {
			if err := os.Link(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
				return err
			}
		} else if isLog && whole {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			var at int
			if at, whole = (form{commits: true, number: uint32(number)}).end(b); !whole {
				b = b[:at]
			}
			if err := os.WriteFile(filepath.Join(to, name), b, durable.FileMode); err != nil {
				return err
			}
		}
	}
	return nil
}

// openToRead makes an error of a panic over damage.
func (e Engine) openToRead(dir string, closed bool) (_ *pebble.DB, err error) {
	defer damage.Recovered("database", &err)
	if err := e.Probe(dir, closed); err != nil {
		return nil, err
	}
	o := e.options()
	o.ReadOnly = true
	opened, err := pebble.Open(dir, o)
	return opened, named(err)
}

type salvager struct {
	db   *db
	bad  []pebble.SSTableInfo // by their greatest keys
	gaps []kv.Gap
}

// run reads all entries that can be read.
func (v *salvager) run(ctx context.Context, entry func(key, value []byte) error) error {
	for from := []byte{0}; ; { // all keys are greater, and Pebble's own checks of a race build want a byte
		end, err := v.forward(ctx, from, entry)
		if end == nil || err != nil {
			return err
		}
		if from, err = v.behind(end); err != nil {
			return err
		}
		v.gaps = append(v.gaps, kv.Gap{Where: v.where(end), From: end, To: from})
		if from == nil {
			return nil
		}
	}
}

// forward reads the entries from a key on, up to damage, and returns from which key on
// it has read none; nil: it has come to the end.
func (v *salvager) forward(ctx context.Context, from []byte, entry func(key, value []byte) error) (end []byte, err error) {
	it, err := v.db.pebble.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from})
	if err != nil {
		return v.damage(from, err)
	}
	defer func() { _ = it.Close() }() // it repeats the error of its last move
	for it.First(); it.Valid(); it.Next() {
		key := bytes.Clone(it.Key())
		value, err := it.ValueAndErr()
		if err != nil {
			return v.damage(from, err)
		}
		if err := entry(key, bytes.Clone(value)); err != nil {
			return nil, err
		}
		from = kv.After(key)
	}
	if err := it.Error(); err != nil {
		return v.damage(from, err)
	}
	return nil, nil
}

// damage tells damage, which ends at a key what can be read, from other errors.
func (v *salvager) damage(at []byte, err error) ([]byte, error) {
	if !damage.Is(err) {
		return nil, named(err)
	}
	return at, nil
}

// behind is the least key from which on a damaged table can be read again, of those
// that reach a key; nil: it cannot be read up to the end of all.
func (v *salvager) behind(key []byte) ([]byte, error) {
	for i := range v.bad {
		t := &v.bad[i]
		last := t.Largest.UserKey
		if bytes.Compare(last, key) < 0 {
			continue
		}
		it, err := v.db.pebble.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: kv.After(last)})
		to, failed := kv.After(last), err
		if err == nil {
			for it.Last(); it.Valid(); it.Prev() {
				to = append(to[:0], it.Key()...)
			}
			failed = it.Error()
			_ = it.Close() // it repeats the error
		}
		switch {
		case failed == nil:
			continue // it is not this table
		case !damage.Is(failed):
			return nil, named(failed)
		case bytes.Compare(to, key) <= 0:
			to = kv.After(key)
		}
		return to, nil
	}
	return nil, nil
}

// where names the first damaged table that may hold a key.
func (v *salvager) where(key []byte) string {
	for i := range v.bad {
		if t := &v.bad[i]; bytes.Compare(t.Largest.UserKey, key) >= 0 {
			return "the file " + filepath.Base(tableFile(v.db.dir, uint64(t.BackingSSTNum)))
		}
	}
	return "the database files"
}
