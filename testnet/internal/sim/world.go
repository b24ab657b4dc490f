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

// Timer is an event in the queue.
type Timer struct {
	at    time.Duration
	order uint64
	do    func() // nil once it has happened or was stopped
}

// Stop cancels the event. It does nothing on a nil Timer.
func (t *Timer) Stop() {
	if t != nil {
		t.do = nil
	}
}

// At calls do at a time, or at once if that has passed.
func (w *World) At(at time.Duration, do func()) *Timer {
	w.asked++
	t := &Timer{at: max(at, w.now), order: w.asked, do: do}
	heap.Push(&w.queue, t)
	return t
}

// After calls do in d from now.
func (w *World) After(d time.Duration, do func()) *Timer { return w.At(w.now+d, do) }

// Step runs the next event before the time until, and reports whether there was
// one.
func (w *World) Step(until time.Duration) bool {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		t := heap.Pop(&w.queue).(*Timer)
		if t.do == nil {
			continue
		}
		w.now = max(w.now, t.at) // what was skipped over happens late
		w.steps++
		do := t.do
		t.do = nil
		do()
		return true
	}
	return false
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

type queue []*Timer

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*Timer)) }
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return t
}
