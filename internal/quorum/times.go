package quorum

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// How request times are kept and read.
const (
	// window is how many of a peer's last requests count. The 95th percentile of 64 is the
	// fourth greatest: one slow answer does not move it.
	window = 64
	// enough is from how many on they say when an answer is late.
	enough = 8
	// MaxPeers bounds what is remembered: the peer that was heard of longest ago gives way.
	// A peer takes 0.6 KiB.
	MaxPeers = 4096
	// halfLife is in what time the estimate of a peer that is not asked halves. So a peer
	// that was slow is asked again some time: after 3 minutes if it was ten times slower
	// than the nearest.
	halfLife = time.Minute
	// restFirst is for how long a peer that has failed is asked after all others.
	// restMost is for how long at most, after several failures in a row.
	restFirst = time.Second
	restMost  = time.Minute
)

// When a second host is asked in addition to one whose answer is late.
const (
	// hedgeUnknown is after what time, of a peer whose request times are not known.
	hedgeUnknown = 250 * time.Millisecond
	// hedgeLeast is the shortest such time: a processor that is busy elsewhere for some
	// milliseconds is no reason.
	hedgeLeast = 5 * time.Millisecond
	// hedgeShare is how many hedges there may be a request, hedgeBurst how many at once
	// after a time without.
	hedgeShare = 1. / 32
	hedgeBurst = 4
)

// Times is how long the requests to peers have taken. From these follow the order in
// which they are asked and when an answer is late. It is for one goroutine at a time. The
// zero value is ready.
type Times struct {
	of map[ID]*took
	// hedges is for how many there is room now, less hedgeBurst: the zero value has all.
	hedges float64
}

// took is what is known of a peer.
type took struct {
	last         [window]time.Duration // a ring
	median, slow time.Duration         // of these, slow the 95th percentile; 0: none is known
	count        int                   // of all requests
	heard        time.Duration         // when the last one ended
	failed       int                   // in a row
	rests        time.Duration         // until when
}

func (t *Times) peer(id ID) *took {
	p := t.of[id]
	if p != nil {
		return p
	}
	if t.of == nil {
		t.of = map[ID]*took{}
	}
	if len(t.of) >= MaxPeers {
		var oldest ID
		for id, p := range t.of {
			if o := t.of[oldest]; o == nil || p.heard < o.heard || p.heard == o.heard && id < oldest {
				oldest = id
			}
		}
		delete(t.of, oldest)
	}
	p = &took{}
	t.of[id] = p
	return p
}

// Took notes a request that a peer has answered.
func (t *Times) Took(id ID, d, now time.Duration) {
	p := t.peer(id)
	p.add(d, now)
	p.failed, p.rests = 0, 0
}

// Cut notes a request whose answer is awaited no longer. It counts as one that took so
// long, if it has taken longer than half of them do. Otherwise what is slow would be cut
// each time, and be taken for fast.
func (t *Times) Cut(id ID, d, now time.Duration) {
	if p := t.peer(id); d > p.median {
		p.add(d, now)
	}
}

// Failed notes a peer that could not be reached, or did not answer in time.
func (t *Times) Failed(id ID, now time.Duration) {
	p := t.peer(id)
	p.heard = now
	p.rests = now + min(restMost, restFirst<<min(p.failed, 10))
	p.failed++
}

func (p *took) add(d, now time.Duration) {
	p.last[p.count%window] = max(0, d)
	p.count++
	p.heard = now
	all := p.last
	sorted := all[:min(p.count, window)]
	slices.Sort(sorted)
	p.median, p.slow = quantile(sorted, 1, 2), quantile(sorted, 95, 100)
}

// quantile is the least time that at least a share of num of den requests did not exceed.
func quantile(sorted []time.Duration, num, den int) time.Duration {
	return sorted[(len(sorted)*num+den-1)/den-1]
}

// Estimate is how long a request to a peer takes: the median of the last ones, which
// halves with each minute in which it is not asked. 0: it is not known, and such a peer
// is asked before all others, once.
func (t *Times) Estimate(id ID, now time.Duration) time.Duration {
	p := t.of[id]
	if p == nil {
		return 0
	}
	halvings := max(0, now-p.heard).Seconds() / halfLife.Seconds()
	return time.Duration(float64(p.median) * math.Exp2(-halvings))
}

// Late is after what time a second host is asked in addition to a peer that has not
// answered: the 95th percentile of its last requests.
func (t *Times) Late(id ID) time.Duration {
	p := t.of[id]
	if p == nil || p.count < enough {
		return hedgeUnknown
	}
	return max(hedgeLeast, p.slow)
}

// rests reports whether a peer has failed just now.
func (t *Times) rests(id ID, now time.Duration) bool {
	p := t.of[id]
	return p != nil && now < p.rests
}

// Asked makes room for a share of a hedge.
func (t *Times) Asked() { t.hedges = min(0, t.hedges+hedgeShare) }

// Hedge takes the room of a hedge, if there is any.
func (t *Times) Hedge() bool {
	if t.hedges-1 < -hedgeBurst {
		return false
	}
	t.hedges--
	return true
}

// Sort orders the hosts of a shard. Those that have not failed just now go first, then
// those that are connected, then the nearest, then by id. So all is a function of what
// is known.
func (t *Times) Sort(hosts []ID, connected func(ID) bool, now time.Duration) {
	rank := func(id ID) (n int) {
		for i, worse := range []bool{!connected(id), t.rests(id, now)} {
			if worse {
				n += 1 << i
			}
		}
		return n
	}
	slices.SortFunc(hosts, func(a, b ID) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(t.Estimate(a, now), t.Estimate(b, now)),
			cmp.Compare(a, b),
		)
	})
}
