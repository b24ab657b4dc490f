package directory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/bfield/locator"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// Where is what a Locator knows of a key.
type Where uint8

const (
	// Unknown: hosts are to be asked.
	Unknown Where = iota
	// Nowhere: no key that was acknowledged for Fresh or longer is this one. It is
	// promised of honest hosts.
	Nowhere
	// In a shard.
	In
	// OneOf several shards; or of one, which not every host names.
	OneOf
)

// String is the answer in words.
func (w Where) String() string {
	return [...]string{Unknown: "unknown yet", Nowhere: "nowhere", In: "in a shard", OneOf: "one of these"}[w]
}

// Answer is the answer to a look-up.
type Answer struct {
	Where  Where
	Shard  placement.Shard   // of In; of OneOf the first
	Others []placement.Shard // of OneOf, behind the first
	// Sure: every host that could know better says the same, and said so within Fresh; and
	// it is no false positive. Without it, a shard that does not have the key says nothing
	// about the key: hosts are to be asked.
	Sure bool
}

// Locate says where a key is, whose home and whose index in its home's set are given.
func (l *Locator) Locate(home placement.Shard, index dbadapter.Index, now time.Duration) Answer {
	own, wrote := l.recent.get(mix(home, index), now)
	l.mu.RLock()
	defer l.mu.RUnlock()
	p := l.parts[home]
	if !p.inBase || p.shared[index] {
		return Answer{}
	}
	var found []placement.Shard
	shard, answer := l.index.Lookup(mix(p.home, index))
	if answer == locator.Likely || answer == locator.Exact {
		found = append(found, placement.Shard(shard))
	}
	apart := wrote && !slices.Equal(found, []placement.Shard{own})
	if apart && !slices.Contains(found, own) {
		found = append(found, own)
	}
	apart = apart || answer == locator.OneOf // of two keys with one hash, of which the set has no two
	for _, f := range p.feeds {
		d, ok := f.diff[index]
		if !ok {
			continue
		}
		apart = true
		switch {
		case d.theirs == Shared:
			return Answer{}
		case d.theirs != Gone && !slices.Contains(found, placement.Shard(d.theirs)):
			found = append(found, placement.Shard(d.theirs))
		}
	}
	current := l.current(p, now)
	switch {
	case apart && len(found) > 0:
		return Answer{Where: OneOf, Shard: found[0], Others: found[1:]}
	case len(found) == 1:
		return Answer{Where: In, Shard: found[0], Sure: current && answer == locator.Exact}
	case !current || apart || l.recent.lost(now):
		return Answer{}
	}
	return Answer{Where: Nowhere, Sure: true}
}

// current reports whether all hosts of a set say what the copy says, but for their diffs,
// and said so lately, by the layout that this node goes by: another one may name a further host.
func (l *Locator) current(p *part, now time.Duration) bool {
	if p.doubt || len(p.hosts) == 0 || l.layout == 0 || p.layout != l.layout {
		return false
	}
	for _, id := range p.hosts {
		if h := l.hosts[id]; !h.ever || h.layout != l.layout || now-h.heard >= Fresh || !p.feeds[id].attached || p.late(id, h) {
			return false
		}
	}
	return true
}

// late reports whether a host may have taken over from another one what it has not told yet.
func (p *part) late(id roster.ID, h *host) bool {
	last, left := p.behind[id]
	return left && h.news <= last
}

// Wrote tells of a write of this node that was acknowledged: for twice Fresh no feed needs to
// have told it.
func (l *Locator) Wrote(home placement.Shard, index dbadapter.Index, shard placement.Shard, now time.Duration) {
	l.recent.put(mix(home, index), shard, now)
}

// Found tells that a host holds a key's record in a shard, which the locator has not said: for twice
// Fresh the key is not nowhere here, whatever the feeds have told so far. It is kept of
// maxRecent/4 keys in that time; a further one may be nowhere until the feeds tell of it.
func (l *Locator) Found(home placement.Shard, index dbadapter.Index, shard placement.Shard, now time.Duration) {
	l.recent.found(mix(home, index), shard, now)
}

// recent are writes of this node, by key: in two generations, so that neither a put nor a get
// looks through them. What a host tells meanwhile takes none of them back: it may be of before.
type recent struct {
	mu            sync.Mutex
	writes, older map[uint64]written
	turned        time.Duration // writes began
	until         time.Duration // up to then some may be missing
}

type written struct {
	shard placement.Shard
	until time.Duration
}

func (r *recent) put(key uint64, shard placement.Shard, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := len(r.writes) >= maxRecent/2
	if full || r.writes == nil || now-r.turned > 2*Fresh {
		if full && now-r.turned <= 2*Fresh { // what goes may count still: it was put before turned
			r.until = max(r.until, r.turned+2*Fresh)
		}
		r.older, r.writes, r.turned = r.writes, map[uint64]written{}, now
	}
	r.writes[key] = written{shard, now + 2*Fresh}
}

// found is put, but that nothing goes for it.
func (r *recent) found(key uint64, shard placement.Shard, now time.Duration) {
	r.mu.Lock()
	room := len(r.writes) < maxRecent/4 || now-r.turned > 2*Fresh
	r.mu.Unlock()
	if room {
		r.put(key, shard, now)
	}
}

func (r *recent) get(key uint64, now time.Duration) (placement.Shard, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.writes[key]
	if !ok {
		w, ok = r.older[key]
	}
	return w.shard, ok && now <= w.until
}

func (r *recent) lost(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now < r.until
}

// mix makes a hash of a home and an index: no two have the same (the finalizer of
// SplitMix64 is a bijection; Steele, Lea, Flood, 2014).
func mix(home placement.Shard, index dbadapter.Index) uint64 {
	x := uint64(home)<<48 | uint64(index)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func compareIDs(a, b roster.ID) int { return cmp.Compare(a, b) }
