package changes

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/machine"
)

// Feed is what the watchers of a set share. While there are any, one goroutine reads the
// end of the change log, once for all of them, and wakes those that wait. A commit does no
// more for them than to wake that goroutine. A watcher that is further behind than the feed
// holds reads the log by itself.
type Feed struct {
	ctx    context.Context
	source *Source
	enter  func() (leave func(), err error)

	watched atomic.Int32  // how many watch
	wake    chan struct{} // holds a token once a commit has followed what was read

	mu      sync.Mutex // guards what follows
	stop    context.CancelFunc
	at      uint64 // all changes up to it were in windows; none is read while it is idle
	idle    bool   // no goroutine reads, or it has met an error
	windows []*window
	bytes   int
	groups  [feedGroups]group
}

// group is watchers that are woken together.
type group struct {
	watchers int
	changed  chan struct{} // closed, and replaced, when there is more
}

// The bounds of the windows that a feed holds.
const (
	feedBytes   = 1 << 20
	feedWindows = 256
)

// Watchers are woken a few at a time. Otherwise those that write would wait behind all of
// them at each step of a write. There is a pause after each group, of about four times
// what its watchers take on one processor. So the more there are, the more a window holds,
// and those that write keep most of the processors. A feed that is far behind rests a
// quarter as long, and then not at all, since the log does not wait.
const (
	feedGroups      = 64
	groupSize       = 16 // of a group, while there are others without watchers
	wakeTime        = 20 * time.Microsecond
	eventTime       = 400 * time.Nanosecond // measured with 1,000 watchers
	pauseFactor     = 4
	farBehind       = 8192 // changes
	tooFarBehind    = 4 * farBehind
	feedPauseAtMost = 100 * time.Millisecond
)

// NewFeed is the feed of a set until the context is over. Whoever reads the set's store
// enters first, and leaves when it has read: the store is open in between.
func NewFeed(ctx context.Context, source *Source, enter func() (leave func(), err error)) *Feed {
	f := &Feed{ctx: ctx, source: source, enter: enter, wake: make(chan struct{}, 1), idle: true}
	for i := range f.groups {
		f.groups[i].changed = make(chan struct{})
	}
	return f
}

// Committed is called after each commit to the set. It does not wait.
func (f *Feed) Committed() {
	if f.watched.Load() > 0 {
		machine.Wake(f.wake)
	}
}

// Wait waits until there are changes behind one, but not for longer than some time.
func (f *Feed) Wait(ctx context.Context, behind uint64, d time.Duration) error {
	over := time.After(d)
	var changed <-chan struct{} // nil: the set closes
	if group, err := f.join(); err == nil {
		defer f.leave(group)
		changed = f.changed(group)
		if f.source.end() > behind {
			return nil
		}
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// join adds a watcher; the first one starts the feed. It returns the watcher's group.
func (f *Feed) join() (in int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.groups {
		if n := f.groups[i].watchers; n < groupSize {
			in = i
			break
		} else if n < f.groups[in].watchers {
			in = i
		}
	}
	defer func() {
		if err == nil {
			f.groups[in].watchers++
		}
	}()
	// First, or a commit between the look at the end of the log and this would wake
	// no goroutine.
	if f.watched.Add(1) > 1 {
		return in, nil
	}
	leave, err := f.enter()
	if err != nil {
		f.watched.Add(-1)
		return 0, err
	}
	w := f.source.fromNow()
	ctx, cancel := context.WithCancel(f.ctx)
	f.stop, f.at, f.idle = cancel, w.at, false
	go func() {
		defer leave()
		f.run(ctx, w)
	}()
	return in, nil
}

// leave removes a watcher; the last one stops the feed.
func (f *Feed) leave(in int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups[in].watchers--
	if f.watched.Add(-1) > 0 {
		return
	}
	f.stop()
	f.idle, f.windows, f.bytes = true, nil, 0
}

// run reads what commits add until the context is over.
func (f *Feed) run(ctx context.Context, w *Watcher) {
	defer f.Committed() // the token that it may have taken is another one's
	for {
		win, err := w.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// Watchers that are not at the end read the log by themselves, and meet
			// the error; the next commit begins anew.
			f.fail(ctx)
			w = f.source.fromNow()
		case win.to > win.from:
			w.skip(win)
			f.add(ctx, win)
			for i := range f.groups {
				pause := f.wakeGroup(i) * (wakeTime + time.Duration(win.to-win.from)*eventTime)
				switch end := f.source.end(); {
				case pause == 0 || end > win.to+tooFarBehind:
					continue
				case end < win.to+farBehind:
					pause *= pauseFactor
				}
				if machine.Sleep(ctx, min(pause, feedPauseAtMost)) != nil {
					return
				}
			}
			continue
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
	}
}

// add publishes a window.
func (f *Feed) add(ctx context.Context, win *window) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // the last watcher has left
		return
	}
	if f.idle {
		f.idle, f.windows, f.bytes = false, nil, 0
	}
	f.windows, f.bytes = append(f.windows, win), f.bytes+win.bytes
	drop := 0
	for ; f.bytes > feedBytes && drop < len(f.windows)-1 || len(f.windows)-drop > feedWindows; drop++ {
		f.bytes -= f.windows[drop].bytes
	}
	f.windows = slices.Delete(f.windows, 0, drop)
	f.at = win.to
}

// fail lets the watchers read by themselves.
func (f *Feed) fail(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.idle = true
	for i := range f.groups {
		f.groups[i].wake()
	}
}

// wakeGroup wakes a group, and returns how many watchers it has.
func (f *Feed) wakeGroup(i int) (watchers time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &f.groups[i]
	if g.watchers > 0 {
		g.wake()
	}
	return time.Duration(g.watchers)
}

func (g *group) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// changed is closed when there is more for a group.
func (f *Feed) changed(in int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups[in].changed
}

// next is the window that goes on where a watcher of a group is; or nil. behind: the
// watcher is to read by itself. Otherwise it waits for changed.
func (f *Feed) next(w *Watcher, in int) (win *window, behind bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle || w.at >= f.at {
		return nil, f.idle, f.groups[in].changed
	}
	i, _ := slices.BinarySearchFunc(f.windows, w.at, func(win *window, at uint64) int {
		if win.to <= at {
			return -1
		}
		return 1
	})
	if i < len(f.windows) && w.has(f.windows[i]) {
		return f.windows[i], false, f.groups[in].changed
	}
	return nil, true, f.groups[in].changed
}
