package peer

import (
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// stopwatch times the steps of one sync, waits on the network included. It
// belongs to the goroutine that runs the session.
type stopwatch struct {
	log     *slog.Logger
	metrics *metrics
	start   time.Time
	end     time.Time // zero while it runs
	steps   map[reconcile.Step]time.Duration
	step    reconcile.Step
	since   time.Time // when step began; zero before the first
}

func newStopwatch(n *Node, ns *Namespace, remote ID) *stopwatch {
	return &stopwatch{
		log:     n.log.With(logNamespace(ns), logPeer(remote)),
		metrics: n.metrics,
		start:   time.Now(),
		steps:   map[reconcile.Step]time.Duration{},
	}
}

// enter begins a step, and ends the one before.
func (w *stopwatch) enter(step reconcile.Step) {
	now := time.Now()
	if !w.since.IsZero() {
		if w.step == step {
			return
		}
		w.steps[w.step] += now.Sub(w.since)
	}
	w.step, w.since = step, now
	w.log.Debug("sync step", slog.Any("step", step))
}

// stop ends the last step.
func (w *stopwatch) stop() {
	w.end = time.Now()
	if !w.since.IsZero() {
		w.steps[w.step] += w.end.Sub(w.since)
	}
	for step, d := range w.steps {
		w.metrics.steps.WithLabelValues(step.String()).Observe(d.Seconds())
	}
}

// read tells milliseconds, in all and by step.
func (w *stopwatch) read() (float64, map[string]float64) {
	now, running := w.end, w.end.IsZero()
	if running {
		now = time.Now()
	}
	steps := map[string]float64{}
	for _, step := range reconcile.Steps() {
		d := w.steps[step]
		if running && step == w.step && !w.since.IsZero() {
			d += now.Sub(w.since)
		}
		steps[step.String()] = ms(d)
	}
	return ms(now.Sub(w.start)), steps
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
