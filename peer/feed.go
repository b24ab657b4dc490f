package peer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// feed is what the watchers of a namespace share: while there are any, one goroutine reads
// the end of the change log, once for all of them, and wakes those that wait. A commit does
// no more for them than to wake that goroutine. A watcher that is further behind than the
// feed holds reads the log by itself.
type feed struct {
	watched atomic.Int32  // how many watch
	wake    chan struct{} // holds a token once a commit has followed what was read

	mu      sync.Mutex // guards what follows
	stop    context.CancelFunc
	at      uint64 // all changes up to it were in windows; none is read while it is idle
	idle    bool   // no goroutine reads, or it has met an error
	windows []*node.Window
	bytes   int
	changed chan struct{} // closed, and replaced, when what stands above changes
}

// What the feed holds of what it has read.
const (
	feedBytes   = 1 << 20
	feedWindows = 256
)

// pausePerWatcher is for how long after a window the feed lets each watcher that it has
// woken run before it wakes them again: about what that takes. So the more there are, the
// more a window holds, and those that write get their turn.
const pausePerWatcher = 20 * time.Microsecond

func newFeed() *feed {
	return &feed{wake: make(chan struct{}, 1), changed: make(chan struct{}), idle: true}
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

// join adds a watcher; the first one starts the feed.
func (f *feed) join(ns *Namespace) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	// First, or a commit between the look at the end of the log and this would wake
	// no goroutine.
	if f.watched.Add(1) > 1 {
		return nil
	}
	w, err := ns.core.NewWatcher("", nil)
	if err == nil {
		err = ns.enter("watch")
	}
	if err != nil {
		f.watched.Add(-1)
		return err
	}
	ctx, cancel := context.WithCancel(ns.ctx)
	f.stop, f.at, f.idle = cancel, w.At(), false
	go func() {
		defer ns.gate.leave()
		f.run(ctx, ns, w)
	}()
	return nil
}

// leave removes a watcher; the last one stops the feed.
func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched.Add(-1) > 0 {
		return
	}
	f.stop()
	f.idle, f.windows, f.bytes = true, nil, 0
}

// run reads what commits add until the context is over.
func (f *feed) run(ctx context.Context, ns *Namespace, w *node.Watcher) {
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
			if w, err = ns.core.NewWatcher("", nil); err != nil {
				return
			}
		case win.To > win.From:
			w.Skip(win)
			f.add(ctx, win)
			timer.Reset(time.Duration(f.watched.Load()) * pausePerWatcher)
			select {
			case <-timer.C:
				continue
			case <-ctx.Done():
				return
			}
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
	f.tell()
}

// fail lets the watchers read by themselves.
func (f *feed) fail(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.idle = true
	f.tell()
}

func (f *feed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// next is the window that goes on where a watcher is; or nil. behind: the watcher is to
// read by itself, and else it waits for changed.
func (f *feed) next(w *node.Watcher) (win *node.Window, behind bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle || w.At() >= f.at {
		return nil, f.idle, f.changed
	}
	i, _ := slices.BinarySearchFunc(f.windows, w.At(), func(win *node.Window, at uint64) int {
		if win.To <= at {
			return -1
		}
		return 1
	})
	if i < len(f.windows) && w.Has(f.windows[i]) {
		return f.windows[i], false, f.changed
	}
	return nil, true, f.changed
}
