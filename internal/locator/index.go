package locator

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Disk keeps the copies of sets, each under a name. A driver's files do.
type Disk interface {
	// Read returns what Write has written, or nil if nothing was.
	Read(name string) ([]byte, error)
	// Write replaces it, durably and as a whole.
	Write(name string, data []byte) error
}

// Config says what an Index is for.
type Config struct {
	// Shards is how many the namespace has, 1 to MaxShards.
	Shards int
	// Seed of its hashes: random, and nobody else's.
	Seed uint64
	Disk Disk
}

// ErrConfig means that no Index is as configured.
var ErrConfig = errors.New("locator: impossible configuration")

// Where is what an Index knows of a key.
type Where uint8

const (
	// Ask hosts: the set is not known, or the key may be in several shards, or is Shared.
	Ask Where = iota
	// Nowhere: no key of the copy has this index.
	Nowhere
	// In a shard.
	In
)

// String is the answer in words.
func (w Where) String() string {
	return [...]string{Ask: "unknown", Nowhere: "nowhere", In: "in a shard"}[w]
}

// Index says in which shard each key is, of all sets of a namespace.
type Index struct {
	config Config

	mu      sync.RWMutex
	sets    []set
	damaged int
}

type set struct {
	known, dirty bool
	at           Place
	entries      map[dbadapter.Index]Code
}

// Open returns an Index of the copies that are on disk. A copy that is damaged, or that cannot
// be read, is passed over, and counted in Stats.
func Open(c Config) (*Index, error) {
	if c.Shards < 1 || c.Shards > MaxShards || c.Disk == nil {
		return nil, fmt.Errorf("%w: %d shards; 1 to %d are possible, with a disk", ErrConfig, c.Shards, MaxShards)
	}
	x := &Index{config: c, sets: make([]set, c.Shards)}
	for s := range placement.Shard(c.Shards) {
		data, err := c.Disk.Read(copyName(s))
		if err == nil && len(data) == 0 {
			continue
		}
		entries := map[dbadapter.Index]Code{}
		var at Place
		if err == nil {
			at, err = parseCopy(data, c.Shards, s, func(es []Entry) {
				for _, e := range es {
					entries[e.Index()] = e.Code()
				}
			})
		}
		if err != nil {
			x.damaged++
			continue
		}
		x.sets[s] = set{known: true, at: at, entries: entries}
	}
	return x, nil
}

// Replace takes a set that was fetched whole: entries that ascend, none Gone, as of a place. It
// is on disk when Replace returns. After an error nothing has changed.
func (x *Index) Replace(s placement.Shard, at Place, entries []Entry) error {
	data, err := appendCopy(nil, x.config.Shards, s, at, entries)
	if err == nil {
		err = x.config.Disk.Write(copyName(s), data)
	}
	if err != nil {
		return fmt.Errorf("write a copy of set %d: %w", s, err)
	}
	m := make(map[dbadapter.Index]Code, len(entries))
	for _, e := range entries {
		m[e.Index()] = e.Code()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sets[s] = set{known: true, at: at, entries: m}
	return nil
}

// Apply takes changes of a set, in their order, up to a place; Gone takes an index away. With no
// change the place alone moves. Of a set that is not known it does nothing. The copy on disk is
// older until Work or Save has written it: after a crash Place tells as of when it is.
func (x *Index) Apply(s placement.Shard, at Place, changes []Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := &x.sets[s]
	if !t.known {
		return
	}
	t.at, t.dirty = at, true
	for _, e := range changes {
		if e.Code() == Gone {
			delete(t.entries, e.Index())
		} else {
			t.entries[e.Index()] = e.Code()
		}
	}
}

// Drop lets go of a set's copy: Lookup answers Ask until Replace.
func (x *Index) Drop(s placement.Shard) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sets[s] = set{}
}

// Place is up to where the copy of a set goes; ok is false if there is none.
func (x *Index) Place(s placement.Shard) (at Place, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sets[s].at, x.sets[s].known
}

// Entries are those of a set as it is now, ascending; none if it is not known. A copy that cannot be read is
// an error: it is to be fetched anew.
func (x *Index) Entries(s placement.Shard) ([]Entry, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sets[s].sorted(), nil
}

func (t *set) sorted() (entries []Entry) {
	for index, c := range t.entries {
		entries = append(entries, NewEntry(index, c))
	}
	slices.Sort(entries)
	return entries
}

// Lookup says where the key with this index in a set is. The shard is 0 unless it is In one.
func (x *Index) Lookup(s placement.Shard, index dbadapter.Index) (Where, placement.Shard) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := &x.sets[s]
	c, ok := t.entries[index]
	switch {
	case !t.known || c == Shared && ok:
		return Ask, 0
	case !ok:
		return Nowhere, 0
	}
	return In, placement.Shard(c)
}

// Work returns what is to be done in the background, or nil: it writes copies to disk, and builds
// the field anew. A driver runs it beside everything else, and asks again after it: until what it
// returned has been run, Work returns nil. It returns errors of the disk; then it is to be asked
// again later. more says that further sets are on their way.
func (x *Index) Work(more bool) func() error { return nil }

// Save writes all copies to disk as they are, so that the next start has little to catch up
// with. A crash in the middle, or none of it, loses time alone.
func (x *Index) Save() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for s := range x.sets {
		t := &x.sets[s]
		if !t.known || !t.dirty {
			continue
		}
		entries := t.sorted()
		data, err := appendCopy(nil, x.config.Shards, placement.Shard(s), t.at, entries)
		if err == nil {
			err = x.config.Disk.Write(copyName(placement.Shard(s)), data)
		}
		t.dirty = err != nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Stats are counts of an Index.
type Stats struct {
	Sets    int // that are known
	Keys    int // of the copies of these sets, as they were last written, and what was added since
	Damaged int // copies that were let go of: damaged, or not to be read

	// Bytes, by part.
	FieldBytes   int // the B-field: its room for new keys among them
	ExactBytes   int // changes that the field does not answer
	ChangedBytes int // changes since the copies on disk were written
}

// Bytes is the sum over the parts.
func (s Stats) Bytes() int { return s.FieldBytes + s.ExactBytes + s.ChangedBytes }

// Stats returns the counts.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st := Stats{Damaged: x.damaged}
	for i := range x.sets {
		if x.sets[i].known {
			st.Sets++
			st.Keys += len(x.sets[i].entries)
		}
	}
	return st
}
