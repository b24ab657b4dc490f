package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// waitPause and waitPauseMax bound the pauses between two tries with a member. What
// is awaited is left to pushes for pushPatience, before a sync is begun.
const (
	waitPause    = 250 * time.Millisecond
	waitPauseMax = 5 * time.Second
	pushPatience = time.Second
)

// Errand is the course of a wait with one member: the member is asked, with
// patience. Where no push brings soon what is awaited, a sync follows. For a
// version the question follows once more, since a sync may have begun before the
// write. What fails is tried again after a pause. A driver does what Next says and
// tells Answered or Synced what came of it. It starts nothing, and ends with the
// wait.
type Errand struct {
	set    *Set
	remote ID
	key    *wire.AskKey // nil: everything that is held
	step   WaitStep
	asked  *wire.AskSet // last
	synced bool         // in this try
	pause  time.Duration
	err    error
}

// WaitStep is what a wait does next with a member.
type WaitStep struct {
	Do WaitDo
	// Question is that of WaitAsk, with Patience.
	Question wire.Question
	Patience time.Duration
	// Pause is that of WaitPause, from the beginning of the try on.
	Pause time.Duration
}

// WaitDo is a kind of step.
type WaitDo uint8

// The steps of a wait.
const (
	WaitAsk   WaitDo = iota + 1
	WaitSync         // of everything, both ways
	WaitPause        // the try has failed with Err; another one follows the pause
	WaitOver         // the member holds it
)

// Errand begins the course with a member: about a version, or nil for everything.
func (set *Set) Errand(remote ID, about *wire.AskKey) *Errand {
	e := &Errand{set: set, remote: remote, key: about, pause: waitPause}
	e.ask()
	return e
}

// Next is what to do now.
func (e *Errand) Next() WaitStep { return e.step }

// Err is why the last try has failed; nil before the first end of one.
func (e *Errand) Err() error { return e.err }

// Paused begins another try, after a pause.
func (e *Errand) Paused() {
	e.synced = false
	e.ask()
}

func (e *Errand) ask() {
	e.step = WaitStep{Do: WaitAsk, Patience: pushPatience, Question: e.key}
	if e.key == nil {
		e.asked = e.set.SetQuestion()
		e.step.Question = e.asked
	}
}

// failed ends a try.
func (e *Errand) failed(err error) {
	e.err = err
	e.step = WaitStep{Do: WaitPause, Pause: e.pause}
	e.pause = min(2*e.pause, waitPauseMax)
}

func (e *Errand) over() { e.step, e.err = WaitStep{Do: WaitOver}, nil }

// Answered takes the answer to the question, or the error that came in its place.
func (e *Errand) Answered(reply *wire.Reply, err error) {
	switch {
	case err != nil:
		e.failed(err)
	case e.key == nil:
		if e.err = ConfirmsSet(e.asked, reply); e.err == nil {
			e.over()
		} else {
			e.step = WaitStep{Do: WaitSync}
		}
	default:
		missing := e.set.Confirms(e.remote, e.key, reply)
		answer, ok := reply.Answer.(*wire.KeyAnswer)
		switch {
		case missing == nil:
			e.over()
		case e.synced || !ok || answer.Declines != 0:
			e.failed(missing)
		default:
			e.err, e.step = missing, WaitStep{Do: WaitSync}
		}
	}
}

// Synced takes the end of the sync. One that is verified and began after the wait
// proves that the peer holds everything. For a version the question that follows
// decides, so what else was declined is no failure.
func (e *Errand) Synced(verified bool, err error) {
	switch {
	case e.key == nil && err == nil && !verified:
		e.failed(reconcile.ErrNotVerified)
	case e.key == nil && err == nil:
		e.over()
	case e.key == nil:
		e.failed(err)
	case err != nil && !errors.Is(err, syncing.ErrRejected):
		e.failed(fmt.Errorf("%w; a sync: %w", e.err, err))
	default:
		e.synced = true
		e.ask()
	}
}
