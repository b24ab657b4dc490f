package pebblekv

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble takes the tables in memory off its cache. While much is written they would
// leave nothing of it, and each look-up would read filters from the files: the cache is
// larger by all of them. At rest there are the one that is written to and one to be used
// again, and the cache would fill what the others leave with blocks that the kernel
// caches as well.

// spare keeps the room of the tables in memory that are not there from being used.
type spare struct {
	mu      sync.Mutex // guards what follows
	cache   *pebble.Cache
	waiting int // tables that are full and not flushed, as far as the events have told
	release func()
}

func newSpare(cache *pebble.Cache) *spare {
	s := &spare{cache: cache, release: func() {}}
	s.note(0)
	return s
}

// note counts tables that wait to be flushed. At its opening Pebble flushes tables of
// which it has not told; what it flushes then takes nothing off, and a count that is wrong
// would cost no more than room.
func (s *spare) note(tables int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = min(max(s.waiting+tables, 0), memTables-2)
	s.release()
	s.release = s.cache.Reserve((memTables - 2 - s.waiting) * memTable)
}
