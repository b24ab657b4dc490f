package locator

import (
	"cmp"
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

// Memory is a Disk in memory.
type Memory struct{ files sync.Map }

// Read implements Disk.
func (m *Memory) Read(name string) ([]byte, error) {
	data, _ := m.files.Load(name)
	b, _ := data.([]byte)
	return b, nil
}

// Write implements Disk.
func (m *Memory) Write(name string, data []byte) error {
	m.files.Store(name, data)
	return nil
}

// Config says what an Index is for.
type Config struct {
	// Shards is how many the namespace has, 1 to placement.MaxShards.
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

// Index says in which shard each key is, of all sets of a namespace. Any number of goroutines
// may use it; calls about one set are to be made one after the other.
type Index struct {
	config Config
	least  int // the least room for new keys, and the least changes that are due: leastRoom, but in tests

	// Taken in this order. Look-ups take mu alone, which is held for moments.
	files   sync.Mutex   // a copy on disk is replaced
	writing sync.Mutex   // guards what follows, and all that writes to layers
	mu      sync.RWMutex // guards of and all layers against look-ups

	sets             []set
	of               []*layers // that have all of a set, or nil
	live             *layers   // the latest ones
	working          bool
	damaged, rebuilt int
}

// set is a copy of a set: on disk, and what has changed since.
type set struct {
	known     bool
	at, saved Place // of the whole, and of what is on disk
	keys      int   // on disk
	changed   []Entry
	written   int // counts the copies: with another number it is another one
}

const (
	// leastRoom takes 16 KiB of a field for 256 shards.
	leastRoom = 1 << 12

	// changedPart: copies are written when so many keys have a change that is not on disk. A change
	// takes 8 bytes, so that these are a sixteenth of a byte a key. With 10^7 keys in 256 sets some
	// 300 bytes of copies are written for each change.
	changedPart = 128

	// mostChanged is how many changes a set may have over its keys, when its copy cannot be written
	// or is not for long: half a MiB. Then its copy is let go of, to be fetched anew.
	mostChanged = 1 << 16

	// mostUnsaved is how many copies that cannot be written end a round of writing: a full disk is
	// not tried with all of them, and one bad file keeps no other from being written.
	mostUnsaved = 4

	// chunk is how many changes are made while look-ups wait: some 0.1 ms.
	chunk = 256
)

// Open returns an Index of the copies that are on disk, which Work takes in. A copy that is
// damaged, or that cannot be read, is passed over, and counted in Stats.
func Open(c Config) (*Index, error) {
	if c.Shards < 1 || c.Shards > placement.MaxShards || c.Disk == nil {
		return nil, fmt.Errorf("%w: %d shards; 1 to %d are possible, with a disk", ErrConfig, c.Shards, placement.MaxShards)
	}
	x := &Index{config: c, least: leastRoom, sets: make([]set, c.Shards), of: make([]*layers, c.Shards), live: &layers{exact: make([]exact, c.Shards)}}
	for s := range placement.Shard(c.Shards) {
		data, err := c.Disk.Read(copyName(s))
		if err == nil && len(data) == 0 {
			continue
		}
		t := set{known: true}
		if err == nil {
			t.at, err = parseCopy(data, c.Shards, s, func(es []Entry) { t.keys += len(es) })
		}
		if err != nil {
			x.damaged++
			continue
		}
		t.saved = t.at
		x.sets[s] = t
	}
	return x, nil
}

// Replace takes a set that was fetched whole: entries that ascend, none Gone, as of a place. It
// is on disk when Replace returns, and look-ups use it, if there was no copy and the field has room
// for this one; else they answer Ask until Work has built another field. After an error nothing has changed.
func (x *Index) Replace(s placement.Shard, at Place, entries []Entry) error {
	x.files.Lock()
	defer x.files.Unlock()
	if err := x.write(s, at, entries); err != nil {
		return err
	}
	x.writing.Lock()
	l := x.live
	fits := !x.sets[s].known && len(entries) <= l.room()
	x.exchange(s, set{known: true, at: at, saved: at, keys: len(entries)})
	t := x.sets[s]
	x.writing.Unlock()
	if !fits {
		return nil
	}
	for part := range slices.Chunk(entries, chunk) { // so that changes of other sets do not wait
		x.writing.Lock()
		x.put(l, s, part)
		x.writing.Unlock()
	}
	x.take(l, s, t)
	return nil
}

// write puts a copy on disk in the place of the one before. files is held.
func (x *Index) write(s placement.Shard, at Place, entries []Entry) error {
	data, err := appendCopy(nil, x.config.Shards, s, at, entries)
	if err == nil {
		err = x.config.Disk.Write(copyName(s), data)
	}
	if err != nil {
		return fmt.Errorf("write a copy of set %d: %w", s, err)
	}
	return nil
}

// exchange makes a set another one, that no layers have. writing is held.
func (x *Index) exchange(s placement.Shard, t set) {
	t.written = x.sets[s].written + 1
	x.sets[s] = t
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of[s] = nil
}

// Apply takes changes of a set, in their order, up to a place; Gone takes an index away. With no
// change the place alone moves. Of a set that is not known it does nothing. The copy on disk is
// older until Work or Save has written it: after a crash Place tells as of when it is.
func (x *Index) Apply(s placement.Shard, at Place, changes []Entry) {
	x.writing.Lock()
	defer x.writing.Unlock()
	t := &x.sets[s]
	if !t.known {
		return
	}
	if len(t.changed)+len(changes) > t.keys+mostChanged {
		x.drop(s)
		return
	}
	t.at, t.changed = at, append(t.changed, changes...)
	if l := x.of[s]; l != nil {
		x.put(l, s, changes)
	}
}

// put puts entries of a set into layers, some at a time. writing is held.
func (x *Index) put(l *layers, s placement.Shard, entries []Entry) {
	for part := range slices.Chunk(entries, chunk) {
		x.mu.Lock()
		for _, e := range part {
			l.put(s, e)
		}
		x.mu.Unlock()
		if e := &l.exact[s]; e.full() {
			merged := e.merged(l.shards)
			x.mu.Lock()
			*e = merged
			x.mu.Unlock()
		}
	}
}

// Drop lets go of a set's copy: Lookup answers Ask until Replace. The file stays; read after a
// restart it is what it was, a copy as of its place.
func (x *Index) Drop(s placement.Shard) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.exchange(s, set{})
}

// drop is Drop of a copy that is to blame.
func (x *Index) drop(s placement.Shard) {
	x.damaged++
	x.exchange(s, set{})
}

// Place is up to where the copy of a set goes; ok is false if there is none.
func (x *Index) Place(s placement.Shard) (at Place, ok bool) {
	x.writing.Lock()
	defer x.writing.Unlock()
	return x.sets[s].at, x.sets[s].known
}

// Lookup says where the key with this index in a set is. The shard is 0 unless it is In one. An
// index that the copy has is never Nowhere, and one that it has not is In some shard, or to be
// asked for, in one of 4,096. In a wrong shard is one of 10^7 keys or so: one for which the field
// had become too full (bfield.Field.Add).
func (x *Index) Lookup(s placement.Shard, index dbadapter.Index) (Where, placement.Shard) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if l := x.of[s]; l != nil {
		return l.get(s, index)
	}
	return Ask, 0
}

// Save writes all copies to disk as they are, so that the next start has little to catch up
// with. A crash in the middle, or none of it, loses time alone.
func (x *Index) Save() error {
	var all []placement.Shard
	for s := range x.config.Shards {
		all = append(all, placement.Shard(s))
	}
	return x.save(all)
}

func (x *Index) save(due []placement.Shard) error {
	var errs []error
	for _, s := range due {
		if err := x.saveOne(s); err != nil {
			if errs = append(errs, err); len(errs) == mostUnsaved {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// saveOne writes a copy with its changes.
func (x *Index) saveOne(s placement.Shard) error {
	x.files.Lock()
	defer x.files.Unlock()
	x.writing.Lock()
	t := x.sets[s]
	x.writing.Unlock()
	if t.at == t.saved && len(t.changed) == 0 {
		return nil
	}
	entries, ok, err := x.entries(s, t)
	if !ok {
		return err
	}
	if err := x.write(s, t.at, entries); err != nil {
		return err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	now := &x.sets[s]
	if now.written != t.written { // it was dropped meanwhile
		return nil
	}
	now.saved, now.keys, now.changed = t.at, len(entries), slices.Clone(now.changed[len(t.changed):])
	now.written++
	return nil
}

// Entries are those of a set as it is now, ascending; none if it is not known. A copy that cannot
// be read, which the error tells, is let go of: it is to be fetched anew.
func (x *Index) Entries(s placement.Shard) ([]Entry, error) {
	x.writing.Lock()
	t := x.sets[s]
	x.writing.Unlock()
	entries, _, err := x.entries(s, t)
	return entries, err
}

func (x *Index) entries(s placement.Shard, t set) (entries []Entry, ok bool, err error) {
	stored := make([]Entry, 0, t.keys)
	ok, err = x.read(s, t, func(es []Entry) { stored = append(stored, es...) })
	if !ok {
		return nil, false, err
	}
	if len(t.changed) == 0 {
		return stored, true, nil
	}
	return merge(stored, t.changed, false), true, nil
}

// read gives the copy of a set on disk, in parts. If it is not as it was written, the set is let
// go of, and ok is false; the error is the disk's.
func (x *Index) read(s placement.Shard, t set, each func([]Entry)) (ok bool, err error) {
	if !t.known {
		return false, nil
	}
	data, err := x.config.Disk.Read(copyName(s))
	if err == nil {
		at, bad := parseCopy(data, x.config.Shards, s, each)
		if bad == nil && at == t.saved {
			return true, nil
		}
	} else {
		err = fmt.Errorf("read the copy of set %d: %w", s, err)
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.sets[s].written == t.written {
		x.drop(s)
	}
	return false, err
}

// merge lays changes, of which the last one of an index holds, over entries that ascend. Those that are Gone are
// left out, unless gone.
func merge(entries, changes []Entry, gone bool) []Entry {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b Entry) int { return cmp.Compare(a.Index(), b.Index()) })
	all := make([]Entry, 0, len(entries)+len(changes))
	for i, c := range changes {
		if i+1 < len(changes) && changes[i+1].Index() == c.Index() {
			continue
		}
		for ; len(entries) > 0 && entries[0].Index() < c.Index(); entries = entries[1:] {
			all = append(all, entries[0])
		}
		if len(entries) > 0 && entries[0].Index() == c.Index() {
			entries = entries[1:]
		}
		if gone || c.Code() != Gone {
			all = append(all, c)
		}
	}
	return append(all, entries...)
}
