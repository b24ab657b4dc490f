package directory

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/bfield/locator"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// Disk keeps the copies of sets, each under a name, in memory's place. A driver's files do.
type Disk interface {
	// Read returns what Write has written, or nil if nothing was.
	Read(name string) ([]byte, error)
	// Write replaces it, durably and as a whole.
	Write(name string, data []byte) error
}

// Config says what a Locator is for.
type Config struct {
	// Shards is how many the namespace has.
	Shards int
	// Seed of its hashes: random.
	Seed uint64
	Disk Disk
	// Workers is how many goroutines build a base at once; 0: as many as there are
	// processors.
	Workers int
}

// Locator knows in which shard each key is, from what hosts tell. It is
// told which hosts a set has (SetHosts), polls each of them (Poll, News), fetches sets
// (Take, Block), and has work to be run in the background (Work). It keeps some 3 bytes a
// key, with 256 shards, and up to half a byte of changes; 8 bytes a key of sets on their way
// (MaxLoads, MaxSet) and of those that are not on disk yet; and 26 bytes a key while work builds
// a base. A file takes 4.5 bytes a key, of 10^7 in 256 sets.
//
// Any number of goroutines may locate. Times are from one clock that goes forward, since
// any moment, and goes on while the machine sleeps: what was heard before is old afterwards.
type Locator struct {
	Config
	index *locator.Locator

	// Taken in this order.
	writing sync.Mutex // one Save or work at a time: files do not change below what reads them
	feeding sync.Mutex // one message, change of hosts or step of work at a time

	mu     sync.RWMutex // guards what follows; taken to write under feeding only
	layout uint64
	hosts  map[roster.ID]*host
	parts  []*part

	working bool            // under feeding
	latest  time.Duration   // that was heard of; under feeding
	waits   time.Duration   // since when a copy waits for a base, or 0; under feeding
	took    time.Duration   // the last build; under feeding
	damaged int             // copies that were let go of since they did not say what they should, or anything
	tried   placement.Shard // the last set that was to be saved; under writing
	recent  recent

	leastOver, leastExact, maxSet int    // constants, but for tests
	chosen                        func() // called between the choice of copies for a base and its build, for tests
}

// host is what is known of a host, for all sets.
type host struct {
	log, seq uint64
	known    bool // its log is known
	taken    bool // events of it were taken in: seq goes forward only
	surveyed bool // the sums of all of its sets have been heard since its log began
	heard    time.Duration
	ever     bool   // heard holds
	layout   uint64 // by which it was a host then
	polls    uint64 // that have begun
	news     uint64 // the number of the one that was heard last
	faults   int
	failures int           // faults, and sets that did not come; they lapse (failed)
	failing  time.Duration // the last of them
}

// part is what is known of one set.
type part struct {
	home   placement.Shard
	hosts  []roster.ID // all that may hold a key of it which others lack
	layout uint64      // by which they are that
	// behind is which poll of each host was the last one when another host had handed the set over: what has
	// come from that one only later polls tell.
	behind map[roster.ID]uint64
	feeds  map[roster.ID]*feed

	// The copy is the set as one host has told it: a file, or rows that are to be written;
	// and what has changed since, over it. sum is the copy's.
	has    bool
	stored bool
	fresh  rows
	over   rows
	sum    Sum
	// entries is how many it has.
	entries int
	shared  map[dbadapter.Index]bool
	gen     int       // grows with each copy that takes another's place
	from    roster.ID // the host that the copy follows, or ""
	saved   place     // that of the file

	// inBase: the index has the copy. building: it is about to.
	inBase, building bool
	// stale: the index may have rows of a copy that is there no more.
	stale bool
	// doubt: what a host said was there before is not what the index says, perhaps by a false
	// positive; or it has only that host's word. doubts counts such words.
	doubt   bool
	doubts  int
	doubter roster.ID // the first of these hosts

	load *load
}

// feed is what one host has told of one set.
type feed struct {
	known bool
	sum   Sum
	// attached: what the host says is what the copy says, but for diff.
	attached bool
	diff     map[dbadapter.Index]pair
	skip     uint64        // events up to here are in the copy
	since    time.Duration // it is known
}

// pair is what the copy and a host say of an index: not the same.
type pair struct{ ours, theirs Code }

// New returns a Locator with the copies that are on disk; each is read. A copy that is
// damaged, or that cannot be read, is fetched anew.
func New(c Config) (*Locator, error) {
	index, err := locator.New(locator.Config{Shards: c.Shards, Seed: c.Seed, Workers: c.Workers})
	if err != nil {
		return nil, err
	}
	l := &Locator{Config: c, index: index, hosts: map[roster.ID]*host{}, leastOver: leastOver, leastExact: leastExact, maxSet: MaxSet, chosen: func() {}}
	for home := range placement.Shard(c.Shards) {
		p := &part{home: home, feeds: map[roster.ID]*feed{}, shared: map[dbadapter.Index]bool{}}
		l.parts = append(l.parts, p)
		data, err := c.Disk.Read(p.name())
		if err != nil {
			l.damaged++
			continue
		}
		if data == nil {
			continue
		}
		rs, at, sum, err := parseCopy(data, c.Shards, home)
		if err != nil {
			l.damaged++
			continue
		}
		p.has, p.stored, p.sum, p.saved, p.entries = true, true, sum, at, len(rs)
		p.noteShared(rs)
	}
	return l, nil
}

const copyPrefix = "directory-"

func (p *part) name() string { return fmt.Sprintf(copyPrefix+"%04x", p.home) }

// IsCopy reports whether a name is that of a copy on the disk: hosts tell anew what it holds.
func IsCopy(name string) bool { return strings.HasPrefix(name, copyPrefix) }

func (p *part) noteShared(rs rows) {
	p.shared = map[dbadapter.Index]bool{}
	for _, x := range rs {
		if x.code() == Shared {
			p.shared[x.index()] = true
		}
	}
}

// SetHosts tells the layout that counts, as the number that a host tells of it, and which nodes
// may hold keys of each set that is named: its hosts by that layout, and those before
// that have not handed it over yet. This node is one of them if it is a host; its own Host is
// polled like others. A set that is not named keeps its hosts, by the layout with which they
// were told: until they are told with the one that counts, no key of the set is nowhere, as a
// further host may have it. The layout 0 stands for none: no key is nowhere then.
func (l *Locator) SetHosts(layout uint64, hosts map[placement.Shard][]roster.ID) {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.layout = layout
	for home, ids := range hosts {
		l.setHosts(l.parts[home], ids)
		l.parts[home].layout = layout
	}
}

func (l *Locator) setHosts(p *part, hosts []roster.ID) {
	p.hosts = slices.Clone(hosts)
	left := false
	for id := range p.feeds {
		if !slices.Contains(hosts, id) {
			l.lose(p, id)
			delete(p.feeds, id)
			left = true
		}
	}
	for _, id := range hosts {
		if p.feeds[id] == nil {
			p.feeds[id] = &feed{}
			h := l.hosts[id]
			if h == nil {
				h = &host{}
				l.hosts[id] = h
			}
			h.surveyed = false
			l.resume(p, id, h)
		}
	}
	if left {
		p.behind = map[roster.ID]uint64{}
		for id := range p.feeds {
			p.behind[id] = l.hosts[id].polls
		}
	}
}

// resume goes on from a copy that was read from disk.
func (l *Locator) resume(p *part, id roster.ID, h *host) {
	if !p.stored || p.saved.host != id || p.from != "" || len(p.over) > 0 {
		return
	}
	if h.known && h.log != p.saved.log || h.taken && p.saved.seq < h.seq {
		return // the events in between are another log's, or past: the sums will tell
	}
	if !h.known || p.saved.seq < h.seq {
		h.known, h.log, h.seq = true, p.saved.log, p.saved.seq
	}
	p.from = id
	*p.feeds[id] = feed{known: true, sum: p.sum, attached: true, diff: map[dbadapter.Index]pair{}, skip: p.saved.seq}
}

// lose forgets what a host has told of a set.
func (l *Locator) lose(p *part, id roster.ID) {
	if f := p.feeds[id]; f != nil {
		*f = feed{}
	}
	if p.from == id {
		p.from = ""
		p.follow(l)
	}
	if p.load != nil && p.load.host == id {
		p.load = nil
	}
}

// drop lets go of a copy that is wrong, or that no host says any more.
func (p *part) drop() {
	*p = part{home: p.home, hosts: p.hosts, layout: p.layout, behind: p.behind, feeds: p.feeds, load: p.load, gen: p.gen + 1, shared: map[dbadapter.Index]bool{}, stale: p.stale || p.inBase || p.building}
	for _, f := range p.feeds {
		f.attached, f.diff = false, nil
	}
}

// Status is what is known of a host, for a person.
type Status struct {
	Host  roster.ID
	Heard time.Duration // when it was last heard; 0 if never
	// Sets are those of which it is to tell; Apart those of them of which it tells nothing, or
	// otherwise than another host. Which of the two is wrong, nothing here says: one that lies is
	// apart in all of its sets, and each other host in those alone that it has with that one.
	Sets, Apart int
	// Faults counts what an honest host does not say: sums that do not come out, events
	// that contradict what was said before.
	Faults int
}

// Status returns that of all hosts, by id. While a host stays apart no key of its sets is
// nowhere, and none surely in a shard: each look-up there asks hosts. No look-up is wrong.
func (l *Locator) Status() []Status {
	l.mu.RLock()
	defer l.mu.RUnlock()
	byID := map[roster.ID]*Status{}
	for _, p := range l.parts {
		differ := false // from the copy
		for _, f := range p.feeds {
			differ = differ || f.known && !f.attached
		}
		for id, f := range p.feeds {
			s := byID[id]
			if s == nil {
				s = &Status{Host: id, Heard: l.hosts[id].heard, Faults: l.hosts[id].faults}
				byID[id] = s
			}
			s.Sets++
			if !f.attached || differ {
				s.Apart++
			}
		}
	}
	var all []Status
	for _, s := range byID {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Status) int { return compareIDs(a.Host, b.Host) })
	return all
}

// Damaged counts copies on disk that were let go of, and fetched anew, since they were damaged, or
// could not be read.
func (l *Locator) Damaged() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.damaged
}

// Stats are those of the index: its bytes, by part.
func (l *Locator) Stats() locator.Stats { return l.index.Stats() }
