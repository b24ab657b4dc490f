package peer

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// metrics are a node's counters. Their names begin with syncd_ and use the
// names of the steps.
type metrics struct {
	node       *Node
	registerer prometheus.Registerer
	standing   standing

	steps *prometheus.HistogramVec
	syncs *prometheus.CounterVec
	bytes *prometheus.CounterVec
	// refusals counts what peers were refused, and questions those of peers.
	refusals, questions *prometheus.CounterVec

	waited *prometheus.CounterVec
	differ *prometheus.CounterVec
	pushes *prometheus.CounterVec
	sweep  *prometheus.CounterVec
	// repairs counts what syncs found where the cells did not prove themselves.
	repairs *prometheus.CounterVec
	// lookups counts routed look-ups, routed the requests that they and routed writes took.
	lookups, routed *prometheus.CounterVec

	records, members, rejected, conflicts, setAside, shards, short, running, waiting, mark, floor, twins, offset, drift, findings, damaged, lost, located, locatorBytes, unheard, trouble *prometheus.Desc
}

func newMetrics(n *Node, registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	m := &metrics{
		node: n, standing: newStanding(),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "syncd_sync_step_seconds", Help: "Time of a sync's step, waits on the peer included.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10), // 0.1 ms to 26 s
		}, []string{"step"}),
		syncs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_syncs_total", Help: "Syncs that ended, by result; those that this node was asked for and refused are in syncd_refusals_total. One that proved nothing, such as a dry run that finds differences, a sync of one direction or one that goes on in parts, is unproved.",
		}, []string{"result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_sync_bytes_total", Help: "Bytes of the frames of syncs.",
		}, []string{"direction"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_refusals_total", Help: "What peers asked for and were refused, by protocol (sync, ask, route, join) and cause: denied (not a member, or no such namespace), malformed, busy, turn (the records of another peer come first), and others. Refused questions are in syncd_questions_total, refused pushes in syncd_pushes_total.",
		}, []string{"protocol", "cause"}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_questions_total", Help: "Questions of peers, by subject and result: answered, or the cause of the refusal.",
		}, []string{"subject", "result"}),
		waited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_bandwidth_wait_seconds_total", Help: "For how long the streams of syncs and pushes have waited for the bounds of the bandwidth.",
		}, []string{"direction"}),
		differ: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_found_differences_total", Help: "Differences that syncs, begun here or there, have found: records missing here, missing there, and held in two versions.",
		}, []string{"ns", "kind"}),
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_pushes_total", Help: "Pushes that were sent, that came (received), that were left to syncs (ignored), and that were malformed or forged (refused).",
		}, []string{"what"}),
		sweep: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_swept_records_total", Help: "Records that left a namespace after all members were past them (collected), that were written again for a writer without the right (adopted), or set aside.",
		}, []string{"ns", "what"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_repairs_total", Help: "What syncs found where the cells did not prove themselves: ranges that were compared exactly or left for later, sums (digest) that this node had kept wrong, collisions of checksums, sketches that were not those of their sets.",
		}, []string{"what"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_lookups_total", Help: "Look-ups of a key in a namespace that is cut into shards, by their result: no other node was asked (here), enough hosts have answered (answered), or too few (too_few).",
		}, []string{"result"}),
		routed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_routed_requests_total", Help: "Requests to hosts of shards: for a record (read), for a page of a scan (scan) or a watch (watch), of what a locator hears (feed), and to hold records (write); and those that a host has refused (refused).",
		}, []string{"what"}),
		located:      gauge("syncd_locator_keys", "Keys of other hosts' shards that the locator knows.", "ns"),
		locatorBytes: gauge("syncd_locator_bytes", "Memory of the locator.", "ns"),
		unheard:      gauge("syncd_locator_unheard_shards", "Shards whose keys were not heard for five seconds: level-one reads of a key that is not there ask hosts. While nobody reads at level one, that is so most of the time.", "ns"),
		records:      gauge("syncd_records", "Records held, tombstones included.", "ns"),
		members:      gauge("syncd_members", "Members in the list of this node.", "ns"),
		rejected:     gauge("syncd_rejected_records", "Records of peers that were refused and are remembered.", "ns"),
		conflicts:    gauge("syncd_conflict_records", "Records kept because one whose writer had not seen them took their place.", "ns"),
		shards:       gauge("syncd_held_shards", "Shards of a namespace that is cut into them: those that this node holds (held), those among them of which it has all that it must have (whole), those that it is a host of and does not hold, or is not whole of yet (fetching), and those that it holds until a majority of their new hosts has them (dropping); and those that move, of all members (moving).", "ns", "state"),
		short:        gauge("syncd_short_shards", "Shards that fewer of their hosts say to hold than there are to be replicas, as far as this node has heard.", "ns"),
		setAside:     gauge("syncd_set_aside_records", "Records kept because they were set aside.", "ns"),
		running:      gauge("syncd_running_syncs", "Syncs that are running."),
		waiting:      gauge("syncd_waiting_records", "Tombstones and records that expire, at most: they wait until all members are past them.", "ns"),
		mark:         gauge("syncd_watermark_timestamp_seconds", "Up to when all members hold what was written; 0 if that is not known.", "ns"),
		floor:        gauge("syncd_floor_timestamp_seconds", "Up to when deleted and expired records have been collected; 0 for never.", "ns"),
	}
	m.drift = gauge("syncd_drift_total", "How often what the node keeps of its records for syncs was found to be wrong by an audit, and was put right.", "ns")
	m.findings = gauge("syncd_damage_findings_total", "How often damage to the store was met, by reads, writes, syncs, audits and readings of files; without the name of a namespace where none could be told.", "ns")
	m.damaged = gauge("syncd_damaged", "1 where damage to the store was met, and neither a verification nor a repair has shown since that it is healed.", "ns")
	m.lost = gauge("syncd_lost_records", "Records that are missing since damage was repaired, and that no member gave back; -1 where it is not known how many.", "ns")
	m.trouble = gauge("syncd_troubles", "1 while the node is in a state in which it cannot do its work, else 0; each is in the log and in syncd status.", "kind")
	m.twins = gauge("syncd_twins", "Members whose identity two nodes run with, this node included.", "ns")
	m.offset = gauge("syncd_clock_offset_seconds", "How far this machine's clock is ahead of the median of its peers'; absent if no clock was measured in the last hour.")
	for _, result := range []string{"ok", "denied", "unreachable", "busy", "paused", "not_verified", "twin", "canceled", "error", "unproved", "lists_differ"} {
		m.syncs.WithLabelValues(result)
	}
	for _, protocol := range []string{"sync", "ask", "route", "join"} {
		m.refusals.WithLabelValues(protocol, "denied")
		m.refusals.WithLabelValues(protocol, "busy")
	}
	m.questions.WithLabelValues(subjects[wire.SubjectKey], "answered")
	for _, what := range []string{"range", "digest", "collision", "sketch", "left"} {
		m.repairs.WithLabelValues(what)
	}
	for _, result := range []string{"here", "answered", "too_few"} {
		m.lookups.WithLabelValues(result)
	}
	for _, what := range []string{"read", "scan", "watch", "write", "refused"} {
		m.routed.WithLabelValues(what)
	}
	for _, direction := range []string{"sent", "received"} {
		m.bytes.WithLabelValues(direction)
		m.waited.WithLabelValues(direction)
	}
	for _, what := range []string{"sent", "received", "ignored", "refused"} {
		m.pushes.WithLabelValues(what)
	}
	if registerer == nil {
		return m, nil
	}
	m.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"node": n.self.id.String()}, registerer)
	return m, m.registerer.Register(m)
}

func (m *metrics) unregister() {
	if m.registerer != nil {
		m.registerer.Unregister(m)
	}
}

// counters are those that count by themselves; the rest is read when it is collected.
func (m *metrics) counters() []prometheus.Collector {
	return []prometheus.Collector{m.steps, m.syncs, m.bytes, m.refusals, m.questions, m.waited, m.differ, m.sweep, m.pushes, m.repairs, m.lookups, m.routed}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.counters() {
		c.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{m.records, m.members, m.rejected, m.conflicts, m.setAside, m.shards, m.short, m.running, m.waiting, m.mark, m.floor, m.twins, m.offset, m.drift, m.findings, m.damaged, m.lost, m.located, m.locatorBytes, m.unheard, m.trouble} {
		ch <- d
	}
	m.standing.describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		c.Collect(ch)
	}
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(m.running, m.node.running.Load())
	m.collectDamage(ch, gauge)
	unable := m.node.health.Unable()
	for i, kind := range damage.Kinds(damage.AllKinds) {
		gauge(m.trouble, int64(unable>>i&1), string(kind))
	}
	m.standing.collect(m.node, ch)
	if o, ok := m.node.ClockOffset(); ok {
		ch <- prometheus.MustNewConstMetric(m.offset, prometheus.GaugeValue, o.By.Seconds())
	}
	for _, ns := range m.node.Namespaces() {
		info := ns.Info()
		gauge(m.records, info.Records, info.Name)
		gauge(m.members, int64(info.Members), info.Name)
		gauge(m.rejected, int64(info.Rejected), info.Name)
		twins := len(info.Twins)
		if info.Twinned != nil {
			twins++
		}
		gauge(m.twins, int64(twins), info.Name)
		gauge(m.conflicts, int64(info.Conflicts), info.Name)
		gauge(m.setAside, int64(info.SetAside), info.Name)
		drifted := 0.0
		for _, sh := range ns.shards() {
			drifted += float64(sh.set.Live.Drifted())
		}
		ch <- prometheus.MustNewConstMetric(m.drift, prometheus.CounterValue, drifted, info.Name)
		if s := info.Shards; s != nil {
			gauge(m.shards, int64(s.Held), info.Name, "held")
			gauge(m.shards, int64(s.Whole), info.Name, "whole")
			gauge(m.shards, int64(s.Fetching), info.Name, "fetching")
			gauge(m.shards, int64(s.Dropping), info.Name, "dropping")
			gauge(m.shards, int64(s.Moving), info.Name, "moving")
			gauge(m.short, int64(s.Short), info.Name)
		}
		if ns.hosts != nil && ns.hosts.Locator != nil {
			stats := ns.hosts.Locator.Index.Stats()
			gauge(m.located, int64(stats.Keys), info.Name)
			gauge(m.locatorBytes, int64(stats.Bytes()), info.Name)
			gauge(m.unheard, int64(ns.hosts.Locator.Unheard(ns.hosts.Net.Now())), info.Name)
		}
		c := ns.Collection()
		gauge(m.waiting, c.Waiting, info.Name)
		gauge(m.mark, unixSeconds(c.Mark), info.Name)
		gauge(m.floor, unixSeconds(c.Floor), info.Name)
	}
}

// collectDamage gives what was met of damage: of the node without a name of a namespace.
func (m *metrics) collectDamage(ch chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value int64, labels ...string)) {
	counts := m.node.damage.Counts()
	of := func(name string, d *status.Damage) {
		ch <- prometheus.MustNewConstMetric(m.findings, prometheus.CounterValue, float64(counts[name]), name)
		damaged := int64(0)
		if d != nil {
			damaged = 1
		}
		gauge(m.damaged, damaged, name)
	}
	of("", m.node.Damage())
	for _, u := range m.node.shelved() {
		of(u.name, m.node.damage.Of(u.id))
	}
	for _, ns := range m.node.Namespaces() {
		of(ns.Name(), m.node.damage.Of(ns.id))
		gauge(m.lost, missing(ns.Lost()), ns.Name())
	}
}

// unixSeconds is 0 for the zero time.
func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// swept counts what a sweep did.
func (m *metrics) swept(ns *Namespace, s gc.Swept) {
	for what, n := range map[string]int64{"collected": s.Collected, "adopted": s.Adopted, "set_aside": s.SetAside} {
		m.sweep.WithLabelValues(ns.Name(), what).Add(float64(n))
	}
}

// lookedUp counts a look-up in a namespace that is cut into shards.
func (m *metrics) lookedUp(f *shards.Found, err error) {
	result := "answered"
	switch {
	case err != nil:
		result = "too_few"
	case f.Requests == 0:
		result = "here"
	}
	m.lookups.WithLabelValues(result).Inc()
}

// found counts the differences that a conversation has found.
func (m *metrics) found(r *reconcile.Report) {
	for kind, n := range map[string]int{"missing_here": r.MissingHere, "missing_there": r.MissingThere, "mismatched": r.Mismatched} {
		m.differ.WithLabelValues(r.Namespace, kind).Add(float64(n))
	}
}

// waitedFor counts for how long a stream has waited for a bound.
func (m *metrics) waitedFor(direction string, d time.Duration) {
	m.waited.WithLabelValues(direction).Add(d.Seconds())
}

// result is the label of how a sync ended.
func result(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed):
		return "canceled"
	case errors.Is(err, ErrDenied):
		return "denied"
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(err, ErrPaused):
		return "paused"
	case errors.Is(err, ErrNotVerified):
		return "not_verified"
	case errors.Is(err, ErrTwin):
		return "twin"
	case errors.Is(err, reconcile.ErrListsDiffer):
		return "lists_differ"
	case errors.Is(err, ErrUnreachable):
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
	if errors.Is(err, wire.ErrFrame) {
		return causes[wire.CodeProtocol]
	}
	refusal, ok := reconcile.Refusal(err).(*wire.Refuse)
	if !ok || errors.Is(err, ErrUnreachable) {
		return ""
	}
	return causes[refusal.Code]
}

// refused counts what a peer was refused.
func (m *metrics) refused(protocol string, err error) {
	if cause := causeOf(err); cause != "" {
		m.refusals.WithLabelValues(protocol, cause).Inc()
	}
}

// asked counts a question of a peer.
func (m *metrics) asked(question *wire.Ask, err error) {
	result := "answered"
	if err != nil {
		if result = causeOf(err); result == "" {
			result = "gone"
		}
	}
	m.questions.WithLabelValues(subjects[question.Question.Subject()], result).Inc()
}

// ended counts a conversation: once, as a sync, or as one that a peer began and was refused.
func (m *metrics) ended(incoming bool, r *reconcile.Report, err error) {
	switch cause := causeOf(err); {
	case err == nil && !r.Verified:
		m.syncs.WithLabelValues("unproved").Inc()
	case incoming && err != nil && cause != "" && cause != "limit" && cause != "not_verified" && cause != "error":
		m.refused("sync", err)
	default:
		m.syncs.WithLabelValues(result(err)).Inc()
	}
}
