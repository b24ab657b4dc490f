package httpapi

import (
	"maps"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/reconcile"
)

// running are the syncs that callers wait for, with their reports so far.
type running struct {
	mu   sync.Mutex // guards what follows
	next int
	of   map[int]reconcile.Report
}

// begin notes a sync. hear takes its report so far, done ends it.
func (r *running) begin() (hear func(reconcile.Report), done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int]reconcile.Report{}
	}
	r.next++
	n := r.next
	hear = func(report reconcile.Report) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.of[n] = report
	}
	return hear, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, n)
	}
}

// reports are those of the syncs that have said something, the oldest first.
func (r *running) reports() (out []api.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(r.of)) {
		report := r.of[n]
		out = append(out, api.ReportOf(&report))
	}
	return out
}
