package locator

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// Bounds of what a node asks of hosts' feeds.
const (
	// PollBusy is how often a host is polled while reads find keys of its sets nowhere: so an answer has a second
	// and a half, and the copy is heard within Fresh all the time. PollIdle is how often else.
	PollBusy = 3 * time.Second
	PollIdle = time.Minute

	// maxFetches of sets are under way at once, one of a host; maxFetched is how many entries they may have
	// in all, 128 MiB: what would be more is fetched when the others have ended.
	maxFetches = 8
	maxFetched = 1 << 24
	// maxPages are those of one set at most: a page has MaxPage of them, or is of some 16 MiB of records, so
	// that it is enough for 256 GiB. Where others are sent, as by a host that lies, the fetch ends.
	maxPages = 4 * maxFetched / MaxPage

	// A host that has not answered rests: restFirst, and twice as long after each further failure, up to
	// restMost; as long after an answer that is none. A set is not asked of a host that was no whole one, or
	// whose set is too large, for refusedFor.
	restFirst  = 2 * time.Second
	restMost   = 10 * time.Minute
	refusedFor = time.Minute
)

// errSet has a set followed elsewhere for a while, and no other set of the host.
var errSet = errors.New("the set is not followed there")

// Row says where a set can be followed, by the row by which this node goes.
type Row struct {
	Name  quorum.Name
	Hosts []roster.ID // the old hosts; none: there is no row, or this node is a whole host itself
}

// Net is what a Follower knows of the node.
type Net struct {
	Self roster.ID
	// Row is that of a set, Mark stands for those of several.
	Row  func(set placement.Shard) Row
	Mark func(sets ...placement.Shard) Mark
	// Left, if not nil, is told why a host, or a set of it, is not followed for a while.
	Left func(host roster.ID, err error)
}

// Follower follows each set at one whole host, and keeps an Index of what it hears. Any number of goroutines
// may use it.
type Follower struct {
	Index *Index
	net   Net

	heard struct {
		sync.RWMutex // look-ups wait for it, and not for mu
		sets         []heard
	}

	mu       sync.Mutex // guards what follows
	sets     []followed
	hosts    map[roster.ID]*host
	fetches  int // under way
	fetched  int // entries, of those
	assigned time.Duration
}

// followed is how one set is followed.
type followed struct {
	at      roster.ID                   // the host; "": at none
	fetch   bool                        // it is to be fetched
	busy    bool                        // it is being fetched
	missed  atomic.Bool                 // a key was nowhere since its host was polled
	refused map[roster.ID]time.Duration // hosts that are not asked until then
	// wrote are entries of writes of this node since the last poll was sent, or since the fetch began: what
	// the host says of their indices may be older.
	wrote map[dbadapter.Index]Code
}

// heard says that a copy is as a host held it at a time, or later, by a row; zero: that is not known.
type heard struct {
	at   time.Duration
	from roster.ID
	row  quorum.Name
}

// host is one at which sets are followed.
type host struct {
	polling, fetching bool
	sent              time.Duration // the last poll
	soon              bool          // the next poll is due
	failures          int
	rests             time.Duration // until then
}

// NewFollower returns one of all sets of the index.
func NewFollower(index *Index, net Net) *Follower {
	f := &Follower{Index: index, net: net, sets: make([]followed, index.config.Shards), hosts: map[roster.ID]*host{}, assigned: -PollBusy}
	f.heard.sets = make([]heard, len(f.sets))
	return f
}

// Locate says where the key is that has this index in a set. It is Nowhere only where the set was heard
// within Fresh, by the row by which this node goes.
func (f *Follower) Locate(set placement.Shard, index dbadapter.Index, now time.Duration) (Where, placement.Shard) {
	row := f.net.Row(set)
	f.heard.RLock()
	defer f.heard.RUnlock()
	where, shard := f.Index.Lookup(set, index)
	if where != Nowhere {
		return where, shard
	}
	if missed := &f.sets[set].missed; !missed.Load() { // look-ups share what is not written
		missed.Store(true)
	}
	if !f.heard.sets[set].fresh(&row, now) {
		return Ask, 0
	}
	return Nowhere, 0
}

func (h *heard) fresh(row *Row, now time.Duration) bool {
	return len(row.Hosts) > 0 && h.row == row.Name && now-h.at <= Fresh
}

// hear notes when a set was heard.
func (f *Follower) hear(set placement.Shard, h heard) {
	f.heard.Lock()
	defer f.heard.Unlock()
	f.heard.sets[set] = h
}

// Wrote has the index say where a value is that this node has written, before the write is acknowledged. What
// a host tells of the index from then on counts.
func (f *Follower) Wrote(set placement.Shard, e Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := &f.sets[set]; s.busy || s.at != "" && f.hosts[s.at].polling {
		if s.wrote == nil {
			s.wrote = map[dbadapter.Index]Code{}
		}
		s.wrote[e.Index()] = e.Code()
	}
	if at, ok := f.Index.Place(set); ok {
		f.Index.Apply(set, at, []Entry{e})
	}
}

// Status is how one set is followed.
type Status struct {
	// Host is the one that it is followed at; "": at none.
	Host roster.ID
	// Heard is when the last poll was sent that was answered with all news of the set, by From; zero: none was.
	// Fresh: no longer ago than Fresh, by this row.
	Heard time.Duration
	From  roster.ID
	Fresh bool
}

// Status is how a set is followed.
func (f *Follower) Status(set placement.Shard, now time.Duration) Status {
	row := f.net.Row(set)
	f.heard.RLock()
	h := f.heard.sets[set]
	f.heard.RUnlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return Status{Host: f.sets[set].at, Heard: h.at, From: h.from, Fresh: h.fresh(&row, now)}
}

// Fetching reports whether sets are on their way, or are to be fetched next.
func (f *Follower) Fetching() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.sets {
		if s := &f.sets[i]; s.fetch && s.at != "" {
			return true
		}
	}
	return false
}

// Unheard is how many of the sets that are to be followed were not heard within Fresh.
func (f *Follower) Unheard(now time.Duration) (unheard int) {
	for set := range f.sets {
		if set := placement.Shard(set); len(f.net.Row(set).Hosts) > 0 && !f.Status(set, now).Fresh {
			unheard++
		}
	}
	return unheard
}

// Turns are the polls and fetches that are due. Each is to be run until Next returns nil.
func (f *Follower) Turns(now time.Duration) (turns []*Turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now-f.assigned >= PollBusy {
		f.assigned = now
		f.assign(now)
	}
	follows, every := map[roster.ID][]placement.Shard{}, map[roster.ID]time.Duration{}
	for i := range f.sets {
		s := &f.sets[i]
		if s.at == "" {
			continue
		}
		h := f.hosts[s.at]
		if _, known := f.Index.Place(placement.Shard(i)); !known {
			s.fetch = true
		}
		if !s.fetch {
			if follows[s.at] = append(follows[s.at], placement.Shard(i)); s.missed.Load() {
				every[s.at] = PollBusy
			}
		} else if !s.busy && !h.fetching && f.fetches < maxFetches {
			f.fetches++
			s.busy, h.fetching, s.wrote = true, true, nil
			f.hear(placement.Shard(i), heard{})
			turns = append(turns, &Turn{f: f, Host: s.at, Set: placement.Shard(i), fetch: &fetch{}})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(follows)) {
		if h := f.hosts[id]; !h.polling && (h.soon || now-h.sent >= cmp.Or(every[id], PollIdle)) {
			h.polling = true
			turns = append(turns, &Turn{f: f, Host: id, Set: follows[id][0], sets: follows[id]})
		}
	}
	return turns
}

// assign chooses a host for each set that has none: one that is followed already, so that few hosts are
// polled; else the one at which the most such sets can be (the greedy cover of Chvátal 1979). mu is held.
func (f *Follower) assign(now time.Duration) {
	may := map[int][]roster.ID{}  // hosts of sets that have none
	polled := map[roster.ID]int{} // 1: some set is followed there
	for i := range f.sets {
		s := &f.sets[i]
		row := f.net.Row(placement.Shard(i))
		if len(row.Hosts) == 0 { // the node reads its own set
			if _, known := f.Index.Place(placement.Shard(i)); known && !s.busy {
				f.Index.Drop(placement.Shard(i))
			}
			s.at = ""
			continue
		}
		if s.at != "" && f.may(s, s.at, now) && slices.Contains(row.Hosts, s.at) {
			polled[s.at] = 1
			continue
		}
		if s.at = ""; s.busy {
			continue // until the fetch has ended
		}
		for _, id := range row.Hosts {
			if f.may(s, id, now) {
				may[i] = append(may[i], id)
			}
		}
	}
	for len(may) > 0 {
		count := map[roster.ID]int{}
		for _, hosts := range may {
			for _, id := range hosts {
				count[id]++
			}
		}
		best := slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(a, b roster.ID) int {
			return cmp.Or(cmp.Compare(polled[a], polled[b]), cmp.Compare(count[a], count[b]), cmp.Compare(f.lot(a), f.lot(b)))
		})
		polled[best] = 1
		for i, hosts := range may {
			if slices.Contains(hosts, best) {
				s := &f.sets[i]
				s.at, s.fetch = best, false // its log may be that of the copy
				delete(may, i)
			}
		}
		if f.hosts[best] == nil {
			f.hosts[best] = &host{}
		}
		f.hosts[best].soon = true
	}
}

// may reports whether a set may be followed at a host now. mu is held.
func (f *Follower) may(s *followed, id roster.ID, now time.Duration) bool {
	h := f.hosts[id]
	return (h == nil || h.rests <= now) && s.refused[id] <= now
}

// ErrAgain: the question is to be asked again, which is not the host's fault.
var ErrAgain = errors.New("ask again")

// lot orders hosts of which as many sets can be, by another order at each node, the same one after a restart.
func (f *Follower) lot(id roster.ID) uint64 {
	return xxh3.HashString(string(f.net.Self) + "\x00" + string(id))
}

// leave has a set followed elsewhere, for refusedFor. mu is held.
func (f *Follower) leave(set placement.Shard, from roster.ID, now time.Duration) {
	s := &f.sets[set]
	if s.refused == nil {
		s.refused = map[roster.ID]time.Duration{}
	}
	s.refused[from] = now + refusedFor
	if s.at == from {
		s.at = ""
	}
	f.assigned = now - PollBusy // at the next look
}

// failed has a host rest, and its sets followed elsewhere. mu is held.
func (f *Follower) failed(id roster.ID, err error, now time.Duration) {
	h := f.hosts[id]
	rest := min(restFirst<<min(h.failures, 16), restMost)
	if errors.Is(err, ErrMessage) {
		rest = restMost
	}
	h.failures++
	h.rests = now + rest
	for i := range f.sets {
		if f.sets[i].at == id {
			f.sets[i].at = ""
		}
	}
	f.assigned = now - PollBusy
}
