package peer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// feed is what the watchers of a shard share. While there are any, one goroutine reads the
// end of the change log, once for all of them, and wakes those that wait. A commit does no
// more for them than to wake that goroutine. A watcher that is further behind than the feed
// holds reads the log by itself.
type feed struct {
	watched atomic.Int32  // how many watch
	wake    chan struct{} // holds a token once a commit has followed what was read

	mu      sync.Mutex // guards what follows
	stop    context.CancelFunc
	at      uint64 // all changes up to it were in windows; none is read while it is idle
	idle    bool   // no goroutine reads, or it has met an error
	windows []*node.Window
	bytes   int
	groups  [feedGroups]group
}

// group is watchers that are woken together.
type group struct {
	watchers int
	changed  chan struct{} // closed, and replaced, when there is more
}

// What the feed holds of what it has read.
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
	eventTime       = 400 * time.Nanosecond // of BenchmarkWatched
	pauseFactor     = 4
	farBehind       = 8192 // changes
	tooFarBehind    = 4 * farBehind
	feedPauseAtMost = 100 * time.Millisecond
)

func newFeed() *feed {
	f := &feed{wake: make(chan struct{}, 1), idle: true}
	for i := range f.groups {
		f.groups[i].changed = make(chan struct{})
	}
	return f
}

// committed is called after each commit.
func (f *feed) committed() {
	if f.watched.Load() == 0 {
		return
	}
	select {
	case f.wake <- struct{}{}:
	default: // it has not looked since
	}
}

// join adds a watcher; the first one starts the feed. It returns the watcher's group.
func (f *feed) join(sh *shard) (in int, err error) {
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
	w, err := sh.set.NewWatcher("", nil)
	if err == nil {
		err = sh.ns.enter("watch")
	}
	if err != nil {
		f.watched.Add(-1)
		return 0, err
	}
	ctx, cancel := context.WithCancel(sh.ctx)
	f.stop, f.at, f.idle = cancel, w.At(), false
	go func() {
		defer sh.ns.gate.leave()
		f.run(ctx, sh, w)
	}()
	return in, nil
}

// leave removes a watcher; the last one stops the feed.
func (f *feed) leave(in int) {
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
func (f *feed) run(ctx context.Context, sh *shard, w *node.Watcher) {
	defer f.committed() // the token that it may have taken is another one's
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		win, err := w.Read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// Watchers that are not at the end read the log by themselves, and meet
			// the error; the next commit begins anew.
			f.fail(ctx)
			if w, err = sh.set.NewWatcher("", nil); err != nil {
				return
			}
		case win.To > win.From:
			w.Skip(win)
			f.add(ctx, win)
			for i := range f.groups {
				pause := f.tell(i) * (wakeTime + time.Duration(win.To-win.From)*eventTime)
				switch _, _, end := sh.set.Live.State(); {
				case pause == 0 || end > win.To+tooFarBehind:
					continue
				case end < win.To+farBehind:
					pause *= pauseFactor
				}
				timer.Reset(min(pause, feedPauseAtMost))
				select {
				case <-timer.C:
				case <-ctx.Done():
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
func (f *feed) add(ctx context.Context, win *node.Window) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // the last watcher has left
		return
	}
	if f.idle {
		f.idle, f.windows, f.bytes = false, nil, 0
	}
	f.windows, f.bytes = append(f.windows, win), f.bytes+win.Bytes
	drop := 0
	for ; f.bytes > feedBytes && drop < len(f.windows)-1 || len(f.windows)-drop > feedWindows; drop++ {
		f.bytes -= f.windows[drop].Bytes
	}
	f.windows = slices.Delete(f.windows, 0, drop)
	f.at = win.To
}

// fail lets the watchers read by themselves.
func (f *feed) fail(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.idle = true
	for i := range f.groups {
		f.groups[i].tell()
	}
}

// tell wakes a group, and returns how many watchers it has.
func (f *feed) tell(i int) (watchers time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &f.groups[i]
	if g.watchers > 0 {
		g.tell()
	}
	return time.Duration(g.watchers)
}

func (g *group) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// changed is closed when there is more for a group.
func (f *feed) changed(in int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups[in].changed
}

// next is the window that goes on where a watcher of a group is; or nil. behind: the
// watcher is to read by itself. Otherwise it waits for changed.
func (f *feed) next(w *node.Watcher, in int) (win *node.Window, behind bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle || w.At() >= f.at {
		return nil, f.idle, f.groups[in].changed
	}
	i, _ := slices.BinarySearchFunc(f.windows, w.At(), func(win *node.Window, at uint64) int {
		if win.To <= at {
			return -1
		}
		return 1
	})
	if i < len(f.windows) && w.Has(f.windows[i]) {
		return f.windows[i], false, f.groups[in].changed
	}
	return nil, true, f.groups[in].changed
}
