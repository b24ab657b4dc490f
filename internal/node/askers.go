package node

import (
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// askers are the questions of peers that wait for what they ask about. A commit wakes those
// that it may have settled, and no others: a hundred that wait cost other commits a look-up.
type askers struct {
	mu sync.Mutex // guards what follows
	// keys are those about a key, by its index; sums those about everything, by the sum
	// that they wait for.
	keys map[dbadapter.Index][]*waker
	sums map[dbadapter.Sum][]*waker
}

// waker is one that waits.
type waker struct{ wake func() }

// Wait has wake called after each commit that may have settled the question, until
// the caller calls stop. Locks of the namespace are held then, so wake must only
// leave a sign. Wait, then ask for the Answer: what is committed in between wakes.
func (a *Asked) Wait(wake func()) (stop func()) {
	w := &a.set.askers
	switch q := a.ask.Question.(type) {
	case *wire.AskKey:
		return waits(w, &w.keys, a.set.Keys.Hasher.Index(q.Held.Key), wake)
	case *wire.AskSet:
		return waits(w, &w.sums, q.Sum, wake)
	}
	return func() {}
}

func waits[K comparable](w *askers, of *map[K][]*waker, k K, wake func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *of == nil {
		*of = map[K][]*waker{}
	}
	one := &waker{wake}
	(*of)[k] = append((*of)[k], one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := slices.DeleteFunc((*of)[k], func(o *waker) bool { return o == one })
		if (*of)[k] = left; len(left) == 0 {
			delete(*of, k)
		}
	}
}

// wakeAskers wakes those that a commit may have settled.
func (set *Set) wakeAskers(changes []dbadapter.Change) {
	w := &set.askers
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keys) > 0 {
		for i := range changes {
			for _, one := range w.keys[changes[i].Index] {
				one.wake()
			}
		}
	}
	if len(w.sums) > 0 {
		for _, one := range w.sums[set.Sum()] {
			one.wake()
		}
	}
}

// Waiting is how many questions of peers wait.
func (set *Set) Waiting() (n int) {
	w := &set.askers
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.keys {
		n += len(of)
	}
	for _, of := range w.sums {
		n += len(of)
	}
	return n
}
