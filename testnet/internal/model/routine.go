package model

import (
	"context"
	"iter"
	"slices"
)

// routine is code of a process that waits for what the simulation brings: a coroutine. It runs
// only while a step of it does, so that a run stays a function of its seed.
type routine struct {
	process *process
	next    func() (wait, bool)
	stop    func()
	yield   func(wait) bool
	over    context.CancelFunc // of its context
	runs    bool
}

type routineKey struct{}

// routineOf is the routine that a context is of.
func routineOf(ctx context.Context) *routine { return ctx.Value(routineKey{}).(*routine) }

// wait begins what a routine waits for, and has done called once when that is over.
type wait func(done func())

// routine runs code that may await; its context ends with the process. One that has ended begins none.
func (p *process) routine(body func(ctx context.Context)) {
	if p.node.process != p {
		return
	}
	r := &routine{process: p}
	r.next, r.stop = iter.Pull(func(yield func(wait) bool) {
		ctx, over := context.WithCancel(context.WithValue(context.Background(), routineKey{}, r))
		defer over()
		r.yield, r.over = yield, over
		body(ctx)
	})
	p.routines = append(p.routines, r)
	r.step()
}

// aside runs code as a routine of its own, behind what the process does now: another routine may run.
func (p *process) aside(body func(ctx context.Context)) {
	p.after(0, func() { p.routine(body) })
}

// step runs the routine until it waits for something.
func (r *routine) step() {
	r.runs = true
	begin, more := r.next()
	r.runs = false
	if !more {
		p := r.process
		p.routines = slices.DeleteFunc(p.routines, func(o *routine) bool { return o == r })
		return
	}
	begin(func() { r.process.now(r.step) })
}

// end ends the routine. One that runs, in which the process has ended, is to find that out.
func (r *routine) end() {
	if r.runs {
		r.over()
	} else {
		r.stop()
	}
}

// await waits for what begin begins. The error is ErrDown where the process ends meanwhile: the
// code is to end then, without doing anything more.
func (r *routine) await(begin wait) error {
	if r.process.node.process != r.process || !r.yield(begin) {
		r.over()
		return ErrDown
	}
	return nil
}
