//go:build linux

package systemtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// follower is a program that watches a daemon from the start, and goes on from its last
// cursor where the connection breaks.
type follower struct {
	d *daemon

	mu     sync.Mutex // guards what follows
	told   map[string]string
	seen   map[string][]sighting
	breaks int
	events int
}

// sighting is when a version of a key was told.
type sighting struct {
	version string
	at      time.Time
}

// follow watches a daemon until the context ends.
func follow(ctx context.Context, running *sync.WaitGroup, d *daemon) *follower {
	f := &follower{d: d, told: map[string]string{}, seen: map[string][]sighting{}}
	running.Go(func() {
		cursor := "start"
		for ctx.Err() == nil {
			here := map[string]string{} // told on this connection
			err := d.api.Watch(ctx, namespace, cursor, nil, func(e *api.Event) error {
				cursor = e.Cursor
				f.note(e, here)
				return nil
			})
			if ctx.Err() != nil {
				return
			}
			f.mu.Lock()
			f.breaks++
			f.mu.Unlock()
			if err == nil || strings.Contains(err.Error(), "expired") {
				d.t.Errorf("%s: the watch ended: %v", d.name, err)
				return
			}
			select { // the daemon was killed, and comes back
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return f
}

// note takes an event; here is what the connection has told.
func (f *follower) note(e *api.Event, here map[string]string) {
	now := time.Now()
	if e.Kind == "at" {
		return
	}
	state, key := e.Kind+" "+e.Version, string(e.Key.Bytes())
	if here[key] == state {
		f.d.t.Errorf("%s tells twice that %s is %s", f.d.name, key, state)
	}
	here[key] = state
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	f.told[key] = state
	f.seen[key] = append(f.seen[key], sighting{e.Version, now})
}

// missing is one of the keys whose last state, as an export has it, was not told; and how
// many there are.
func (f *follower) missing(export string) (key string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range recordsOf(f.d.t, export) {
		if f.told[r.Key] != "put "+r.Version {
			key, n = r.Key, n+1
		}
	}
	return key, n
}

// held is when the daemon was first seen to hold a version of a key, or a later one.
func (f *follower) held(key, version string) (at time.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen[key] {
		if s.version >= version { // in hexadecimal, the clock first
			return s.at, true
		}
	}
	return time.Time{}, false
}
