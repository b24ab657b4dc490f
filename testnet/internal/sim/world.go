package sim

import (
	"container/heap"
	"time"
)

// World is the time and the queue of one run. Make it with New.
type World struct {
	Random
	Trace Trace

	now   time.Duration
	asked uint64 // events so far, the order among those of one time
	queue queue
	steps int
}

// New is a world at time 0 without events.
func New(seed uint64) *World { return &World{Random: Random{seed: seed}} }

// Now is the virtual time since the run began.
func (w *World) Now() time.Duration { return w.now }

// Steps is the number of past events.
func (w *World) Steps() int { return w.steps }

// event is what happens at a time.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// At calls do at a time, or at once if that has passed.
func (w *World) At(at time.Duration, do func()) {
	w.asked++
	heap.Push(&w.queue, event{at: max(at, w.now), order: w.asked, do: do})
}

// After calls do in d from now.
func (w *World) After(d time.Duration, do func()) { w.At(w.now+d, do) }

// Step runs the next event before the time until, and reports whether there was
// one.
func (w *World) Step(until time.Duration) bool {
	if len(w.queue) == 0 || w.queue[0].at > until {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	w.now = max(w.now, e.at) // what was skipped over happens late
	w.steps++
	e.do()
	return true
}

// Run runs all events up to a time, and sets the time to it.
func (w *World) Run(until time.Duration) {
	for w.Step(until) {
	}
	w.now = max(w.now, until)
}

// Skip sets the time forward without running events, as if all machines had been
// asleep: the events that were due run late.
func (w *World) Skip(d time.Duration) { w.now += d }

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{} // it holds what its function does
	*q = (*q)[:last]
	return e
}
