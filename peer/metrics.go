package peer

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are a node's counters. Their names begin with syncd_ and use the
// names of the steps.
type metrics struct {
	node       *Node
	registerer prometheus.Registerer

	steps  *prometheus.HistogramVec
	syncs  *prometheus.CounterVec
	bytes  *prometheus.CounterVec
	denied prometheus.Counter

	records, members, rejected, conflicts, setAside, running *prometheus.Desc
}

func newMetrics(n *Node, registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	m := &metrics{
		node: n,
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "syncd_sync_step_seconds", Help: "Time of a sync's step, waits on the peer included.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10), // 0.1 ms to 26 s
		}, []string{"step"}),
		syncs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_syncs_total", Help: "Syncs that ended or were put off, by result.",
		}, []string{"result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncd_sync_bytes_total", Help: "Bytes of the frames of syncs.",
		}, []string{"direction"}),
		denied: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "syncd_strangers_denied_total", Help: "Syncs refused because the peer is not a member.",
		}),
		records:   gauge("syncd_records", "Records held, tombstones included.", "ns"),
		members:   gauge("syncd_members", "Members in the list of this node.", "ns"),
		rejected:  gauge("syncd_rejected_records", "Records of peers that were refused and are remembered.", "ns"),
		conflicts: gauge("syncd_conflict_records", "Records kept because one whose writer had not seen them took their place.", "ns"),
		setAside:  gauge("syncd_set_aside_records", "Records kept because they were set aside.", "ns"),
		running:   gauge("syncd_running_syncs", "Syncs that are running."),
	}
	for _, result := range []string{"ok", "denied", "unreachable", "busy", "not_verified", "canceled", "error"} {
		m.syncs.WithLabelValues(result)
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

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.steps.Describe(ch)
	m.syncs.Describe(ch)
	m.bytes.Describe(ch)
	m.denied.Describe(ch)
	for _, d := range []*prometheus.Desc{m.records, m.members, m.rejected, m.conflicts, m.setAside, m.running} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.steps.Collect(ch)
	m.syncs.Collect(ch)
	m.bytes.Collect(ch)
	m.denied.Collect(ch)
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(m.running, m.node.places.running.Load())
	for _, ns := range m.node.Namespaces() {
		info := ns.Info()
		gauge(m.records, info.Records, info.Name)
		gauge(m.members, int64(info.Members), info.Name)
		gauge(m.rejected, int64(info.Rejected), info.Name)
		gauge(m.conflicts, int64(info.Conflicts), info.Name)
		gauge(m.setAside, int64(info.SetAside), info.Name)
	}
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
	case errors.Is(err, ErrNotVerified):
		return "not_verified"
	case errors.Is(err, ErrUnreachable):
		return "unreachable"
	}
	return "error"
}
