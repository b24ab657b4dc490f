// Package machine is what a node takes of the machine that it runs on, besides files and
// sockets: its processors, a clock of the time that has passed, and waits. Package internal/node gets
// them handed in, and the simulator hands in others.
package machine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Aside runs fn on a goroutine of its own, for which wait waits.
func Aside(fn func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	return func() { <-done }
}

// giveWayEvery is how long work that takes all processors goes on before it lets others
// run. A write of this node passes some ten goroutines on its way to the disk and back.
// Behind such work each of them would wait for a processor until the scheduler takes one
// away, 10 ms.
const giveWayEvery = 200 * time.Microsecond

// Each calls fn(0) … fn(n−1), and returns when all calls have. It takes all
// processors, and gives way to others meanwhile.
func Each(n int, fn func(i int)) {
	var next atomic.Int64
	work := func() {
		since := time.Now()
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			fn(int(i))
			if time.Since(since) >= giveWayEvery {
				runtime.Gosched()
				since = time.Now()
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// Turns lets all processors but one sign single writes. Many writers begin together, as
// soon as the commit that they share has ended. If all processors signed, the commit of
// the first few would wait behind the signatures of all the others at each of its steps.
// The two would take as long as one after the other.
type Turns chan struct{}

// NewTurns makes the turns of this machine.
func NewTurns() Turns { return make(Turns, max(1, runtime.GOMAXPROCS(0)-1)) }

// Run runs fn in its turn.
func (t Turns) Run(fn func()) {
	t <- struct{}{}
	defer func() { <-t }()
	fn()
}
