package badgerkv

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// db is an open database.
type db struct {
	badger *badger.DB
	pages  pages
	steps  compactionSteps
	dir    string
	times  times

	entries sync.Pool // of *[]entry

	examiner *examiner.Examiner

	lostBy atomic.Pointer[error] // see lost.go
	tell   func(error)
	pause  time.Duration // before a merge is tried again
}

func (d *db) View() kv.View { return d.times.view(d) }

func (d *db) DropPrefix(prefix []byte) error {
	return d.write(func() error { return d.badger.DropPrefix(prefix) })
}

// Rest has nothing to do: the memory is Go's.
func (d *db) Rest() {}

func (d *db) Close() error {
	d.pages.close()
	d.examiner.Close()
	if err := d.lost(); err != nil {
		return err
	}
	if d.leaves() {
		return kv.ErrLeft
	}
	return d.badger.Close()
}

// Get recovers: Badger panics over some kinds of damage.
func (v view) Get(key []byte, use func([]byte) error) (found bool, err error) {
	defer v.db.recovered(&err)
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the database: %w", err)
	}
	return true, item.Value(use)
}

func (v view) Iterate(prefix []byte) kv.Iterator {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false // values are inline: a prefetch would only start a goroutine each
	o.Prefix = prefix
	return v.iterate(o)
}

// Find: a look-up costs Badger the same, whatever was looked up before.
func (v view) Find() kv.Finder { return finder{v} }

type finder struct{ view }

func (finder) Close() {}

type iterator struct {
	*badger.Iterator
	db     *db
	prefix []byte
	read   int    // entries
	end    func() // of a long scan; nil before it is one
}

func (i *iterator) Next() {
	if i.read++; i.read == longScan {
		i.end = i.db.pages.scan(i.prefix)
	}
	i.Iterator.Next()
}

func (i *iterator) Close() {
	if i.end != nil {
		i.end()
	}
	i.Iterator.Close()
}

func (i *iterator) Key() []byte { return i.Item().Key() }

func (i *iterator) Value(use func([]byte) error) error { return i.Item().Value(use) }

// Err: Badger has no word for damage that an iterator meets.
func (i *iterator) Err() error { return nil }
