// Package metrics is what a node shows to Prometheus: counters of what it has done, and
// gauges of how it is.
//
//	m, err := metrics.New(metrics.Config{Registerer: r, Node: id, Dir: dir, State: state})
//	m.Refused("sync", err)                  // counts
//	watch := m.Stopwatch(log)               // times the steps of one sync
//	watch.Enter(reconcile.StepSketch)
//
// Counters count by themselves. Gauges are read from a [State], which the node makes for
// each scrape. The package knows no node, and has no goroutine.
//
// A name begins with syncd_ and ends with its unit, as Prometheus' conventions say.
// docs/monitoring tells what alerts rest on.
package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Config says of what the metrics are, and where they go.
type Config struct {
	// Registerer receives the metrics; nil: they are not registered.
	Registerer prometheus.Registerer
	// Node is the id of the node, a label of all metrics.
	Node string
	// Dir is the data directory; empty: there is none.
	Dir string
	// State is called at each scrape.
	State func() State
}

// Metrics implements prometheus.Collector. Its methods may be called from several goroutines.
type Metrics struct {
	cfg        Config
	registerer prometheus.Registerer // nil: they are not registered
	counters   []prometheus.Collector
	gauges     gauges

	steps                                                                                              *prometheus.HistogramVec
	syncs, bytes, refusals, questions, waits, differences, pushes, collected, repairs, lookups, routed *prometheus.CounterVec
}

// New makes the metrics of a node, and registers them.
func New(cfg Config) (*Metrics, error) {
	m := &Metrics{cfg: cfg, gauges: newGauges()}
	m.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "syncd_sync_step_duration_seconds", Help: "Time of a step of a sync, waits for the peer included.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10), // 0.1 ms to 26 s
	}, []string{"step"})
	m.counters = append(m.counters, m.steps)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.counters = append(m.counters, c)
		return c
	}
	m.syncs = counter("syncd_syncs_total", "Syncs that ended, by result. A sync that proved nothing is unproved: a dry run that found differences, a sync of one direction, or one that goes on in parts. Syncs that this node refused to peers are in syncd_refusals_total.", "result")
	m.bytes = counter("syncd_sync_bytes_total", "Bytes of messages of syncs, framing included.", "direction")
	m.refusals = counter("syncd_refusals_total", "Requests of peers that this node refused, by protocol (sync, ask, route, join) and cause: denied (not a member, or no such namespace), malformed, busy, turn (the records of another peer go first), and others. Refused questions are in syncd_questions_total, refused pushes in syncd_pushes_total.", "protocol", "cause")
	m.questions = counter("syncd_questions_total", "Questions of peers, by subject and result: answered, or the cause of the refusal.", "subject", "result")
	m.waits = counter("syncd_bandwidth_wait_seconds_total", "Time that streams of syncs and pushes waited for the limits of bandwidth.", "direction")
	m.differences = counter("syncd_differences_total", "Differences that syncs found, whoever began them: records missing here, missing there, or held in two versions (mismatched).", "ns", "kind")
	m.pushes = counter("syncd_pushes_total", "Pushes, by kind: sent, received, left to the next sync (ignored), or malformed or forged (refused).", "kind")
	m.collected = counter("syncd_gc_records_total", "Records that garbage collection changed, by result: collected (all members are past them), adopted (written again, as their writer had lost its right), or set_aside.", "ns", "result")
	m.repairs = counter("syncd_sync_repairs_total", "Repairs within syncs, where the sketches did not prove the sets equal. By kind: ranges compared exactly (range) or left to a later sync (left), wrong sums of this node (digest), collisions of checksums (collision), and sketches that were not those of their sets (sketch).", "kind")
	m.lookups = counter("syncd_lookups_total", "Look-ups of a key in a namespace of shards, by result: no other node was asked (local), enough hosts answered (answered), or too few did (too_few).", "result")
	m.routed = counter("syncd_routed_requests_total", "Requests to hosts of shards, by kind: of a record (read), a page of a scan (scan) or of a watch (watch), changes for the locator (feed), records to hold (write); and requests that a host refused (refused).", "kind")
	m.begin()
	if cfg.Registerer == nil {
		return m, nil
	}
	m.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"node": cfg.Node}, cfg.Registerer)
	return m, m.registerer.Register(m)
}

// begin makes the counters that alerts look at be there from the beginning, so that an
// increase shows.
func (m *Metrics) begin() {
	for _, protocol := range []string{"sync", "ask", "route", "join"} {
		m.refusals.WithLabelValues(protocol, "denied")
		m.refusals.WithLabelValues(protocol, "busy")
	}
	m.questions.WithLabelValues(subjects[wire.SubjectKey], "answered")
	for c, values := range map[*prometheus.CounterVec][]string{
		m.syncs:   {"ok", "denied", "unreachable", "busy", "paused", "not_verified", "twin", "canceled", "error", "unproved", "lists_differ"},
		m.repairs: {"range", "digest", "collision", "sketch", "left"},
		m.lookups: {"local", "answered", "too_few"},
		m.routed:  {"read", "scan", "watch", "write", "refused"},
		m.bytes:   {"sent", "received"},
		m.waits:   {"sent", "received"},
		m.pushes:  {"sent", "received", "ignored", "refused"},
	} {
		for _, value := range values {
			c.WithLabelValues(value)
		}
	}
}

// Unregister takes the metrics back from the registerer.
func (m *Metrics) Unregister() {
	if m.registerer != nil {
		m.registerer.Unregister(m)
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.counters {
		c.Describe(ch)
	}
	for _, d := range m.gauges.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counters {
		c.Collect(ch)
	}
	m.gauges.collect(ch, m.cfg.State(), m.cfg.Dir)
}

// Synced counts a conversation: once, as a sync, or as one that a peer began and was refused.
func (m *Metrics) Synced(incoming bool, r *reconcile.Report, err error) {
	switch cause := causeOf(err); {
	case err == nil && !r.Verified:
		m.syncs.WithLabelValues("unproved").Inc()
	case incoming && err != nil && cause != "" && cause != "limit" && cause != "not_verified" && cause != "error":
		m.Refused("sync", err)
	default:
		m.syncs.WithLabelValues(result(err)).Inc()
	}
	m.bytes.WithLabelValues("sent").Add(float64(r.WireBytesSent))
	m.bytes.WithLabelValues("received").Add(float64(r.WireBytesReceived))
	sketches := 0
	if r.Repair.Sketch {
		sketches = 1
	}
	for kind, n := range map[string]int{"range": r.Repair.Ranges, "digest": r.Repair.Digests, "collision": r.Repair.Collisions, "left": r.Repair.Left, "sketch": sketches} {
		m.repairs.WithLabelValues(kind).Add(float64(n))
	}
}

// Differences counts those that a conversation has found. With none it makes the counters
// of the namespace be there.
func (m *Metrics) Differences(ns string, r *reconcile.Report) {
	for kind, n := range map[string]int{"missing_here": r.MissingHere, "missing_there": r.MissingThere, "mismatched": r.Mismatched} {
		m.differences.WithLabelValues(ns, kind).Add(float64(n))
	}
}

// Refused counts what a peer was refused.
func (m *Metrics) Refused(protocol string, err error) {
	if cause := causeOf(err); cause != "" {
		m.refusals.WithLabelValues(protocol, cause).Inc()
	}
}

// Asked counts a question of a peer.
func (m *Metrics) Asked(question *wire.Ask, err error) {
	result := "answered"
	if err != nil {
		if result = causeOf(err); result == "" {
			result = "gone"
		}
	}
	m.questions.WithLabelValues(subjects[question.Question.Subject()], result).Inc()
}

// Waited counts for how long a stream has waited for a bound of the bandwidth.
func (m *Metrics) Waited(direction string, d time.Duration) {
	m.waits.WithLabelValues(direction).Add(d.Seconds())
}

// Pushed counts a push: sent, received, ignored or refused.
func (m *Metrics) Pushed(kind string) { m.pushes.WithLabelValues(kind).Inc() }

// Collected counts what a collection did.
func (m *Metrics) Collected(ns string, s status.Swept) {
	for result, n := range map[string]int64{"collected": s.Collected, "adopted": s.Adopted, "set_aside": s.SetAside} {
		m.collected.WithLabelValues(ns, result).Add(float64(n))
	}
}

// LookedUp counts a look-up in a namespace that is cut into shards, which took so many requests.
func (m *Metrics) LookedUp(requests int, err error) {
	result := "answered"
	switch {
	case err != nil:
		result = "too_few"
	case requests == 0:
		result = "local"
	}
	m.lookups.WithLabelValues(result).Inc()
}

// Routed counts a request to a host of a shard.
func (m *Metrics) Routed(q wire.Question) {
	kind := "read"
	switch q.(type) {
	case *wire.AskHold:
		kind = "write"
	case *wire.AskScan:
		kind = "scan"
	case *wire.AskChanges:
		kind = "watch"
	case *wire.AskFeed:
		kind = "feed"
	}
	m.routed.WithLabelValues(kind).Inc()
}

// RouteRefused counts a request that the host has refused.
func (m *Metrics) RouteRefused() { m.routed.WithLabelValues("refused").Inc() }

// result is the label of how a sync ended.
func result(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, dbadapter.ErrClosed):
		return "canceled"
	case errors.Is(err, reconcile.ErrDenied):
		return "denied"
	case errors.Is(err, reconcile.ErrBusy):
		return "busy"
	case errors.Is(err, reconcile.ErrPaused):
		return "paused"
	case errors.Is(err, reconcile.ErrNotVerified):
		return "not_verified"
	case errors.Is(err, reconcile.ErrTwin):
		return "twin"
	case errors.Is(err, reconcile.ErrListsDiffer):
		return "lists_differ"
	case errors.Is(err, reconcile.ErrUnreachable):
		return "unreachable"
	}
	return "error"
}

// causes are the names of the codes of refusals, subjects those of questions.
var (
	causes = map[wire.Code]string{
		wire.CodeDenied: "denied", wire.CodeVersion: "version", wire.CodeBusy: "busy", wire.CodeLimit: "limit", wire.CodeNotVerified: "not_verified",
		wire.CodeProtocol: "malformed", wire.CodeInternal: "error", wire.CodeRemoved: "removed", wire.CodeListsDiffer: "lists_differ",
		wire.CodeTwin: "twin", wire.CodeTurn: "turn", wire.CodePaused: "paused",
	}
	subjects = map[wire.Subject]string{
		wire.SubjectKey: "key", wire.SubjectSet: "set", wire.SubjectStatus: "status", wire.SubjectRecord: "record",
		wire.SubjectHold: "hold", wire.SubjectFeed: "feed", wire.SubjectScan: "scan", wire.SubjectChanges: "changes", wire.SubjectKept: "kept", wire.SubjectBody: "body", wire.SubjectNames: "names",
	}
)

// causeOf is why a peer is refused; empty where it is gone, and hears nothing.
func causeOf(err error) string {
	switch {
	case errors.Is(err, wire.ErrFrame):
		return causes[wire.CodeProtocol]
	case errors.Is(err, reconcile.ErrUnreachable):
		return ""
	}
	return causes[reconcile.Refusal(err).Code]
}
