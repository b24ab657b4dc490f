package badgerkv

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Where the system refuses a file, Badger tries again to write a table, once a second. But
// two refusals leave it unfit for more, and only its log tells of them:
//
//	the log of a new table in memory   it has no such table: reads panic, and the next
//	                                   write ends the process
//	a change of the list of tables     it tries again behind what may be half a change, and
//	                                   an opening ends at that, or its file stays closed
//
// The database is then lost to this process. It reads and writes no more, and is not
// closed: what was acknowledged is in the logs, and the next opening finds it.

// These begin the lines of Badger's log that tell of a refusal (badger/v4@v4.9.6).
const (
	noMemTable = "Got error: %v for id"         // memtable.go
	noTable    = "error flushing memtable"      // db.go; by the goroutine that tries again
	noMerge    = "While running doCompact"      // levels.go; as above, 20 times a second
	mergeState = "[Compactor: %d] LOG Compact " // levels.go; the line before, with all tables
)

// logged looks for refusals in the log. It runs on the goroutine that writes the line.
func (d *db) logged(format, text string) {
	switch {
	case strings.HasPrefix(format, noMemTable):
		d.lose(text)
	case strings.HasPrefix(format, noTable), strings.HasPrefix(format, noMerge):
		if d.listed(text); d.lost() != nil {
			runtime.Goexit() // it holds no lock, and would try again
		}
		if strings.HasPrefix(format, noMerge) {
			time.Sleep(d.pause)
		}
	}
}

// listed looks whether an error is one of the list of tables.
func (d *db) listed(text string) {
	if strings.Contains(text, string(os.PathSeparator)+manifest) {
		d.lose(text)
	}
}

func (d *db) lose(text string) {
	err := fmt.Errorf("badger: %s", text)
	if refusal := damage.Refusal(text); refusal != nil {
		err = fmt.Errorf("%w (badger: %s)", refusal, text)
	}
	if d.lostBy.CompareAndSwap(nil, &err) && d.tell != nil {
		d.tell(err)
	}
}

// lost is why the database is; nil if it is not.
func (d *db) lost() error {
	if err := d.lostBy.Load(); err != nil {
		return *err
	}
	return nil
}

// write runs what changes the list of tables, and whose error Badger does not log.
func (d *db) write(do func() error) error {
	if err := d.lost(); err != nil {
		return err
	}
	err := do()
	if err != nil {
		d.listed(err.Error())
	}
	return err
}

// recovered makes an error of a panic.
func (d *db) recovered(err *error) {
	if p := recover(); p != nil {
		if *err = d.lost(); *err == nil {
			*err = damage.Panicked("database", p)
		}
	}
}

// iterate makes an iterator; where it cannot, it returns one that says why.
func (v view) iterate(o badger.IteratorOptions) (it kv.Iterator) {
	var err error
	defer func() {
		if err != nil {
			it = failed{err: err}
		}
	}()
	defer v.db.recovered(&err)
	return &iterator{Iterator: v.txn.NewIterator(o), db: v.db, prefix: o.Prefix}
}

// failed is an iterator over nothing.
type failed struct {
	kv.Iterator
	err error
}

func (failed) Seek([]byte)  {}
func (failed) Valid() bool  { return false }
func (f failed) Err() error { return f.err }
func (failed) Close()       {}
