package metrics

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/reconcile"
)

// Stopwatch times the steps of one sync, waits on the network included. It
// belongs to the goroutine that runs the session.
type Stopwatch struct {
	log      *slog.Logger
	observed *prometheus.HistogramVec
	start    time.Time
	end      time.Time // zero while it runs
	steps    map[reconcile.Step]time.Duration
	step     reconcile.Step
	since    time.Time // when step began; zero before the first
}

// Stopwatch begins to time a sync. Its steps are logged.
func (m *Metrics) Stopwatch(log *slog.Logger) *Stopwatch {
	return &Stopwatch{log: log, observed: m.steps, start: time.Now(), steps: map[reconcile.Step]time.Duration{}}
}

// Enter begins a step, and ends the one before.
func (w *Stopwatch) Enter(step reconcile.Step) {
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

// Stop ends the last step.
func (w *Stopwatch) Stop() {
	w.end = time.Now()
	if !w.since.IsZero() {
		w.steps[w.step] += w.end.Sub(w.since)
	}
	for step, d := range w.steps {
		w.observed.WithLabelValues(step.String()).Observe(d.Seconds())
	}
}

// Read tells milliseconds, in all and by step.
func (w *Stopwatch) Read() (float64, map[string]float64) {
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
		steps[step.String()] = Milliseconds(d)
	}
	return Milliseconds(now.Sub(w.start)), steps
}

// Milliseconds is a duration as reports have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
