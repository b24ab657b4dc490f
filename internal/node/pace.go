package node

import (
	"sync"
	"time"
)

// pace sizes the slices that records from peers are committed in, and the pieces in
// which their signatures are verified. A single write that arrives meanwhile waits
// for the slice that is being committed, and shares its own transaction with
// another slice. So slices are small while single writes arrive, and for some time
// after the last. Single writes arrive in bursts, and slices that grow between two
// bursts would be large at the next one. While none arrive, slices are large, which
// takes less in all.
type pace struct {
	mu   sync.Mutex // guards what follows
	size int        // of the last slice; 0 before the first
	seen uint64     // commitLock.singles as of then
	came time.Duration
}

// next is the size of the next slice, given how many single writes have begun, and the
// time since a fixed moment. It is 0 always where there is no such time: slices then grow
// as soon as no write has come during one.
func (p *pace) next(singles uint64, now time.Duration, least, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case singles != p.seen:
		p.size, p.came = least, now
	case p.size == 0:
		p.size = most
	case p.came != 0 && now-p.came < paceRest:
		p.size = least
	default:
		p.size = min(2*p.size, most)
	}
	p.seen = singles
	return p.size
}
