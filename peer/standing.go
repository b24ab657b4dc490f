package peer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/syncd-io/syncd/internal/durable"
)

// standing are the gauges that alerts look at: how a node stands to the other members,
// and its disk.
type standing struct {
	age, paused, pausedPeers, connected, queue, storage, free *prometheus.Desc
}

func newStanding() standing {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return standing{
		age:         gauge("syncd_verified_sync_age_seconds", "Time since a sync of everything has last proved the records equal to another member's, kept over restarts; before the first one, since the namespace was made, joined or restored here. Absent while this node is the only member.", "ns"),
		paused:      gauge("syncd_paused_namespaces", "1 for a namespace that a person has paused on this node, else 0.", "ns"),
		pausedPeers: gauge("syncd_paused_peers", "Peers that a person has paused on this node."),
		connected:   gauge("syncd_connected_members", "Other members of the namespace to which there is a connection.", "ns"),
		queue:       gauge("syncd_push_queue_bytes", "Bytes of this node's writes that wait to be pushed; those that go to members directly count once for each member.", "ns"),
		storage:     gauge("syncd_storage_bytes", "What the files in the data directory take on the disk."),
		free:        gauge("syncd_storage_free_bytes", "What is free on the disk of the data directory."),
	}
}

func (s *standing) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.age, s.paused, s.pausedPeers, s.connected, s.queue, s.storage, s.free} {
		ch <- d
	}
}

func (s *standing) collect(n *Node, ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if taken, free, err := durable.Usage(n.dir); err == nil {
		gauge(s.storage, float64(taken))
		gauge(s.free, float64(free))
	}
	connected, pausedPeers := map[string]int{}, 0
	for _, p := range n.Peers() {
		if p.Paused {
			pausedPeers++
		}
		for _, name := range p.Namespaces {
			if p.Connected {
				connected[name]++
			}
		}
	}
	gauge(s.pausedPeers, float64(pausedPeers))
	for _, ns := range n.Namespaces() {
		name, paused := ns.Name(), 0.0
		if ns.core.Paused() {
			paused = 1
		}
		gauge(s.paused, paused, name)
		gauge(s.connected, float64(connected[name]), name)
		queued := 0
		for _, sh := range ns.shards() {
			queued += n.queued(sh.set)
		}
		gauge(s.queue, float64(queued), name)
		if age, ok := ns.verifiedAge(); ok {
			gauge(s.age, age.Seconds(), name)
		}
	}
}

// verifiedAge is for how long no sync has proved the records equal to another member's. Of
// several shards it is the longest. ok is false where there is no other member.
func (ns *Namespace) verifiedAge() (age time.Duration, ok bool) {
	members := ns.core.Members().Members()
	if len(members) == 1 && ID(members[0].ID) == ns.node.self.id {
		return 0, false
	}
	for _, sh := range ns.shards() {
		last, since := sh.verified.last()
		at := last.At
		if at.IsZero() {
			at = since
		}
		age = max(age, ns.node.now().Sub(at))
	}
	return age, true
}
