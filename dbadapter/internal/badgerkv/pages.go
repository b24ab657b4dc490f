package badgerkv

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Badger maps its tables into memory and tells the kernel nothing of how it reads
// them. Two things follow. For a page that is not in memory the kernel reads a
// piece of the file around it, up to 8 MiB, so that 100 look-ups in cold files read
// hundreds of megabytes; and each page that was ever touched counts as the
// process's own. pages says of every table, as soon as it is there, that it is read
// at random; long scans take the tables that they read out of that while they run;
// and it lets go of mapped pages, which stay in the kernel's cache, once they are
// more than a bound.
//
// Badger has no call for its mappings, and advice on its files does not reach
// faults of mapped pages, so that the kernel is asked where the tables are
// (/proc/self/maps; decision 0026). Where that cannot be had, nothing is advised:
// what is here changes speed and memory, never results.
type pages struct {
	db     *badger.DB
	dir    string
	bound  int64 // bytes of mapped pages that the process may come to hold
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex           // guards what follows
	advised map[uint64][]mapping // by table
	scans   map[uint64]int       // how many long scans read a table now
	looked  time.Time            // when the tables were last looked at
}

// mapping is a part of this process's address space.
type mapping struct{ from, to uintptr }

const (
	// pagesPause is how often the tables are looked at: a new one is in memory
	// still, since it was just written.
	pagesPause = time.Second
	// longScan is how many entries a scan reads before read-ahead is worth its calls
	// of the system.
	longScan = 4096
)

func (p *pages) start(db *badger.DB, dir string, bound int64) {
	ctx, cancel := context.WithCancel(context.Background())
	*p = pages{
		db: db, dir: dir, bound: bound, cancel: cancel, done: make(chan struct{}),
		scans: map[uint64]int{},
	}
	p.look()
	go p.loop(ctx)
}

// close ends the goroutine.
func (p *pages) close() {
	p.cancel()
	<-p.done
}

func (p *pages) loop(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(pagesPause)
	defer tick.Stop()
	least, _ := mappedPages() // of the program, and of files other than tables
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.look()
		if held, ok := mappedPages(); ok && held > least+p.bound {
			p.letGo()
			least, _ = mappedPages()
		}
	}
}

// look advises what is new, if a file has come or gone since it last did.
func (p *pages) look() {
	info, err := os.Stat(p.dir)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A file that was made just before may not have been mapped yet.
	if info.ModTime().Before(p.looked.Add(-pagesPause)) {
		return
	}
	p.looked = time.Now()
	now := mappedTables(p.dir)
	for id, m := range now {
		if !slices.Equal(p.advised[id], m) && p.scans[id] == 0 {
			adviseRandom(m)
		}
	}
	p.advised = now
}

// letGo gives up the mapped pages of all tables that an iterator holds, so that
// Badger cannot unmap them meanwhile, and another mapping cannot take their place.
func (p *pages) letGo() {
	defer func() { _ = recover() }() // of a database that is lost: it makes no iterators
	txn := newest(p.db)
	defer txn.Discard()
	before := ids(p.db.Tables())
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	it := txn.NewIterator(o)
	defer it.Close()
	// A table that was there before the iterator was made, and is there still, is
	// one that it holds.
	held := ids(p.db.Tables())
	for id, m := range mappedTables(p.dir) {
		if before[id] && held[id] {
			dropPages(m)
		}
	}
}

func ids(tables []badger.TableInfo) map[uint64]bool {
	out := make(map[uint64]bool, len(tables))
	for i := range tables {
		out[tables[i].ID] = true
	}
	return out
}

// scan lets the kernel read ahead in the tables that hold keys of a prefix, until
// the function that it returns is called. The caller keeps the database open.
func (p *pages) scan(prefix []byte) (end func()) {
	var tables []uint64
	for _, t := range p.db.Tables() {
		if overlaps(t.Left, t.Right, prefix) {
			tables = append(tables, t.ID)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range tables {
		if p.scans[id]++; p.scans[id] == 1 {
			adviseNormal(p.advised[id])
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, id := range tables {
			if p.scans[id]--; p.scans[id] == 0 {
				delete(p.scans, id)
				adviseRandom(p.advised[id])
			}
		}
	}
}

// overlaps reports whether keys of the prefix may lie between two keys of Badger,
// both included; those end in a version of 8 bytes.
func overlaps(left, right, prefix []byte) bool {
	const version = 8
	l, r := string(left[:len(left)-version]), string(right[:len(right)-version])
	from := string(prefix)
	return r >= from && (l <= from || len(l) >= len(from) && l[:len(from)] == from)
}
