package peer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
)

// events are what a watch yields, one after another.
type events struct {
	t    *testing.T
	next func() (peer.Event, error, bool)
	stop func()
}

func watching(t *testing.T, ns *peer.Namespace, c peer.Cursor, o ...peer.WatchOption) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	next, stop := iter.Pull2(ns.Watch(ctx, c, o...))
	end := func() { cancel(); stop() }
	t.Cleanup(end)
	return &events{t, next, end}
}

// want takes as many events as are named, as "kind key=value".
func (e *events) want(want ...string) (last peer.Event) {
	e.t.Helper()
	for _, w := range want {
		got, err, _ := e.next()
		if err != nil {
			e.t.Fatalf("the watch ends with %v, want %s", err, w)
		}
		text := strings.TrimSuffix(fmt.Sprintf("%s %s=%s", got.Kind, got.Key, got.Record.Value), " =")
		if got.Coalesced {
			text += " coalesced"
		}
		if text != w {
			e.t.Fatalf("the watch yields %q, want %q", text, w)
		}
		last = got
	}
	return last
}

// fails takes the error that ends the watch.
func (e *events) fails(want error) {
	e.t.Helper()
	if got, err, _ := e.next(); !errors.Is(err, want) {
		e.t.Fatalf("the watch yields %+v and %v, want %v", got, err, want)
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	n := open(t, peer.Config{Dir: dir, WatchLog: 10})
	ns := create(t, n, peer.Policy{})
	put := func(key, value string) {
		t.Helper()
		must(t, errOf(ns.Put(t.Context(), []byte(key), []byte(value))))
	}
	put("a", "1")
	put("b", "1")
	now, err := ns.Cursor()
	must(t, err)
	put("c", "1")
	w := watching(t, ns, now)
	w.want("put c=1")
	put("a", "2")
	w.want("put a=2")
	must(t, errOf(ns.Delete(t.Context(), []byte("a"))))
	at := w.want("delete a=").Cursor
	fromStart := watching(t, ns, peer.FromStart)
	fromStart.want("put b=1", "put c=1", "at")
	some := watching(t, ns, peer.FromStart, peer.WithPrefix([]byte("c")))
	some.want("put c=1", "at")
	put("b", "2")
	put("c", "2")
	fromStart.want("put b=2", "put c=2")
	some.want("put c=2")
	for _, e := range []*events{w, fromStart, some} {
		e.stop()
	}
	put("b", "3")

	// The cursor outlives the node.
	shut(t, n)
	watching(t, ns, at).fails(peer.ErrClosed)
	n = open(t, peer.Config{Dir: dir, WatchLog: 10})
	ns = notes(t, n)
	w = watching(t, ns, at)
	at = w.want("put c=2", "put b=3 coalesced").Cursor
	w.stop() // or what it shares with others would reach back further than the log
	watching(t, ns, "start.1").fails(peer.ErrInvalid)
	another := []byte(at)
	if another[0]++; at[0] == '9' || at[0] == 'f' {
		another[0] = '1'
	}
	watching(t, ns, peer.Cursor(another)).fails(peer.ErrCursorExpired)
	watching(t, ns, at+"0").fails(peer.ErrCursorExpired) // behind the end
	waits := 0
	quiet := watching(t, ns, at, peer.WithProgress(time.Millisecond), peer.BeforeWait(func() { waits++ }))
	if e := quiet.want("at", "at"); e.Cursor != at || waits < 2 {
		t.Errorf("the cursor of a watch at %s is %s; it has waited %d times", at, e.Cursor, waits)
	}
	quiet.stop()
	ended := watching(t, ns, at)
	for range 10 { // more than the log keeps, which reaches back to a summary if that is near
		err := ns.Batch(t.Context(), func(b *peer.Batch) error {
			for i := range 50 {
				b.Put(fmt.Append(nil, "d", i), nil)
			}
			return nil
		})
		must(t, err)
	}
	ended.fails(peer.ErrCursorExpired)
	if shut(t, n); !errors.Is(ended.closing(), peer.ErrClosed) {
		t.Error("a watch goes on when the node has closed")
	}
}

// closing is the error of a call after the end.
func (e *events) closing() error {
	_, err, ok := e.next()
	if !ok {
		return peer.ErrClosed
	}
	return err
}

// What a sync brings is seen by those that watch, and so is what they write.
func TestWatchSeesSyncs(t *testing.T) {
	_, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	now, err := sa.Cursor()
	must(t, err)
	w := watching(t, sa, now)
	ready := watching(t, sa, peer.FromStart)
	ready.want("at")
	wait := make(chan struct{})
	go func() {
		defer close(wait)
		if _, err := sb.Put(t.Context(), []byte("k"), []byte("v")); err != nil {
			t.Error(err)
		}
		if _, err := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{}); err != nil {
			t.Error(err)
		}
	}()
	ready.want("put k=v")
	<-wait
	w.want("put k=v")
}

// Many watch, some of them do not take what they are told, and come and go: writes go on,
// and each of those that read sees each key's last value.
func TestManyWatchers(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	const watchers, writes = 30, 300
	start, err := ns.Cursor()
	must(t, err)
	stuck := make(chan struct{})
	var all sync.WaitGroup
	for i := range watchers {
		all.Go(func() {
			last, taken := map[string]string{}, 0
			for e, err := range ns.Watch(t.Context(), start) {
				if err != nil {
					t.Errorf("watcher %d: %v", i, err)
					return
				}
				last[string(e.Key)] = string(e.Record.Value)
				if taken++; i%3 == 0 && taken == 5 {
					<-stuck // it holds nothing up
				}
				if i%5 == 0 && taken == 10 {
					return
				}
				if last["end"] != "" {
					break
				}
			}
			for key, value := range last {
				if key != "end" && value != fmt.Sprint(writes-10+int(key[0]-'0')) {
					t.Errorf("watcher %d has seen %s=%s last", i, key, value)
				}
			}
		})
	}
	for i := range writes {
		must(t, errOf(ns.Put(t.Context(), fmt.Append(nil, i%10), fmt.Append(nil, i))))
	}
	close(stuck)
	must(t, errOf(ns.Put(t.Context(), []byte("end"), []byte("x"))))
	all.Wait()
}

// A watch ends with its namespace, whether it waits or its loop does something else.
func TestWatchEndsWithNamespace(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	must(t, errOf(ns.Put(t.Context(), []byte("k"), []byte("v"))))
	waiting, busy := make(chan error), make(chan error)
	closed := make(chan struct{})
	began := make(chan struct{}, 2)
	watch := func(end chan error, each func(peer.Event)) {
		for e, err := range ns.Watch(t.Context(), peer.FromStart) {
			if err != nil {
				end <- err
				return
			}
			each(e)
		}
	}
	go watch(waiting, func(e peer.Event) {
		if e.Kind == peer.EventAt {
			began <- struct{}{}
		}
	})
	go watch(busy, func(e peer.Event) {
		if e.Kind == peer.EventPut {
			began <- struct{}{}
			<-closed
		}
	})
	<-began
	<-began
	shut(t, n)
	close(closed)
	for _, end := range []chan error{waiting, busy} {
		if err := <-end; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("the watch ends with %v", err)
		}
	}
}
