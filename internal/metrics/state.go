package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/peer/status"
)

// State is how a node is at a scrape.
type State struct {
	Syncs int // that run
	// ClockOffset is how far the clock is ahead of the peers'; nil: none was measured.
	ClockOffset *time.Duration
	Peers       []status.Peer
	Troubles    map[status.TroubleKind]bool // of each kind, whether there is such a trouble
	Damage      *status.Damage              // that no namespace is known to have
	Findings    map[string]int64            // of damage since the start, by namespace
	Namespaces  []Namespace
	Unserved    []status.Unserved
}

// Namespace is how a namespace is.
type Namespace struct {
	status.Namespace
	Collection status.Collection
	Queued     int   // bytes that wait to be pushed
	Drifted    int64 // how often an audit has found what is kept for syncs to be wrong
	// Unproved is for how long no sync has proved the records equal to another member's;
	// nil: there is no other member.
	Unproved *time.Duration
	Locator  *Locator // nil: there is none
}

// Locator is how a namespace's locator is.
type Locator struct{ Keys, Bytes, Stale int }

// gauges are read from a State.
type gauges struct {
	all []*prometheus.Desc

	running, offset, storage, free, pausedPeers, trouble, findings, damaged                  *prometheus.Desc
	records, members, connected, twins, age, paused, queue                                   *prometheus.Desc
	rejected, conflicts, setAside, lost, corrections, uncollected, watermark, collectedUntil *prometheus.Desc
	shards, underreplicated, located, locatorBytes, stale                                    *prometheus.Desc
}

func newGauges() (g gauges) {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(name, help, labels, nil)
		g.all = append(g.all, d)
		return d
	}
	g.running = gauge("syncd_running_syncs", "Syncs that run now, of both sides.")
	g.offset = gauge("syncd_clock_offset_seconds", "How far this machine's clock is ahead of the median of its peers'. Absent if no clock was measured in the last hour.")
	g.storage = gauge("syncd_storage_bytes", "Disk space that the files in the data directory take.")
	g.free = gauge("syncd_storage_free_bytes", "Free space on the disk of the data directory.")
	g.pausedPeers = gauge("syncd_paused_peers", "Peers that a person has paused on this node.")
	g.trouble = gauge("syncd_troubles", "1 while the node cannot do its work for a reason of this kind, else 0. The log and syncd status give the cause.", "kind")
	g.findings = gauge("syncd_damage_findings_total", "Times that damage to the store was found, by reads, writes, syncs, audits and verifications. ns is empty where the namespace is not known.", "ns")
	g.damaged = gauge("syncd_store_damaged", "1 from the moment damage to the store is found until a verification or a repair shows that it is healed, else 0. ns is empty where the namespace is not known.", "ns")

	g.records = gauge("syncd_records", "Records that this node holds, tombstones included.", "ns")
	g.members = gauge("syncd_members", "Members in the list of this node.", "ns")
	g.connected = gauge("syncd_connected_members", "Other members of the namespace to which there is a connection.", "ns")
	g.twins = gauge("syncd_twin_members", "Members whose identity two nodes run with, this node included: copies of a data directory.", "ns")
	g.age = gauge("syncd_verified_sync_age_seconds", "Time since a sync of all records last proved them equal to another member's, kept over restarts. Before the first proof it counts from when the namespace was made, joined or restored here. Absent while this node is the only member.", "ns")
	g.paused = gauge("syncd_paused_namespaces", "1 for a namespace that a person has paused on this node, else 0.", "ns")
	g.queue = gauge("syncd_push_queue_bytes", "Bytes of writes of this node that are not pushed yet. What goes to members directly counts once for each.", "ns")

	g.rejected = gauge("syncd_rejected_records", "Records of peers that this node refused, as it remembers them.", "ns")
	g.conflicts = gauge("syncd_conflict_records", "Records in the kept log that lost against a write that had not seen them.", "ns")
	g.setAside = gauge("syncd_set_aside_records", "Records in the kept log that were taken out of the set.", "ns")
	g.lost = gauge("syncd_lost_records", "Records that a repair of the store has lost, and that no member gave back; -1 if their number is not known.", "ns")
	g.corrections = gauge("syncd_audit_corrections_total", "Times that an audit found the sums which the node keeps for syncs to differ from its records, and corrected them.", "ns")
	g.uncollected = gauge("syncd_uncollected_records", "Upper bound of the tombstones and records with an expiry that this node holds. They are collected once they have expired and all members are past them.", "ns")
	g.watermark = gauge("syncd_watermark_timestamp_seconds", "Time up to which all members hold what was written; 0 if it is not known.", "ns")
	g.collectedUntil = gauge("syncd_collected_until_timestamp_seconds", "Time up to which deleted and expired records have been collected; 0 for never.", "ns")

	g.shards = gauge("syncd_shards", "Shards of the namespace, by state: those that this node holds (held), holds in whole (whole), is to hold and does not have in whole yet (fetching), and holds until a majority of the new hosts has them (dropping); and those of all members that move (moving).", "ns", "state")
	g.underreplicated = gauge("syncd_underreplicated_shards", "Shards with fewer replicas than the namespace is to have, as far as this node has heard from their hosts.", "ns")
	g.located = gauge("syncd_locator_keys", "Keys of other hosts' shards that the locator knows.", "ns")
	g.locatorBytes = gauge("syncd_locator_bytes", "Memory that the locator takes.", "ns")
	g.stale = gauge("syncd_locator_stale_shards", "Shards of which the locator has heard no changes for five seconds: a read at level one of a key that it does not know asks hosts. It hears changes only while there are such reads.", "ns")
	return g
}

// number is what a metric has for a value.
type number interface {
	~int | ~int64 | ~float64
}

func show[N number](ch chan<- prometheus.Metric, d *prometheus.Desc, value N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
}

func showCount(ch chan<- prometheus.Metric, d *prometheus.Desc, value int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// collect gives the gauges of a state, and of the data directory.
func (g *gauges) collect(ch chan<- prometheus.Metric, s State, dir string) {
	show(ch, g.running, s.Syncs)
	if s.ClockOffset != nil {
		show(ch, g.offset, s.ClockOffset.Seconds())
	}
	if taken, free, err := durable.Usage(dir); err == nil {
		show(ch, g.storage, taken)
		show(ch, g.free, free)
	}
	connected, pausedPeers := map[string]int{}, 0
	for _, p := range s.Peers {
		pausedPeers += flag(p.Paused)
		for _, name := range p.Namespaces {
			connected[name] += flag(p.Connected)
		}
	}
	show(ch, g.pausedPeers, pausedPeers)
	for kind, is := range s.Troubles {
		show(ch, g.trouble, flag(is), string(kind))
	}
	damage := func(name string, d *status.Damage) {
		showCount(ch, g.findings, s.Findings[name], name)
		show(ch, g.damaged, flag(d != nil), name)
	}
	damage("", s.Damage)
	for _, u := range s.Unserved {
		damage(u.Name, u.Damage)
	}
	for i := range s.Namespaces {
		ns := &s.Namespaces[i]
		damage(ns.Name, ns.Damage)
		show(ch, g.connected, connected[ns.Name], ns.Name)
		g.namespace(ch, ns)
	}
}

func (g *gauges) namespace(ch chan<- prometheus.Metric, ns *Namespace) {
	show(ch, g.records, ns.Records, ns.Name)
	show(ch, g.members, ns.Members, ns.Name)
	show(ch, g.twins, len(ns.Twins)+flag(ns.Twinned != nil), ns.Name)
	if ns.Unproved != nil {
		show(ch, g.age, ns.Unproved.Seconds(), ns.Name)
	}
	show(ch, g.paused, flag(ns.Paused), ns.Name)
	show(ch, g.queue, ns.Queued, ns.Name)

	show(ch, g.rejected, ns.Rejected, ns.Name)
	show(ch, g.conflicts, ns.Conflicts, ns.Name)
	show(ch, g.setAside, ns.SetAside, ns.Name)
	show(ch, g.lost, missing(ns.Lost), ns.Name)
	showCount(ch, g.corrections, ns.Drifted, ns.Name)
	show(ch, g.uncollected, ns.Collection.Waiting, ns.Name)
	show(ch, g.watermark, unixSeconds(ns.Collection.Mark), ns.Name)
	show(ch, g.collectedUntil, unixSeconds(ns.Collection.Floor), ns.Name)

	if s := ns.Shards; s != nil {
		for state, n := range map[string]int{"held": s.Held, "whole": s.Whole, "fetching": s.Fetching, "dropping": s.Dropping, "moving": s.Moving} {
			show(ch, g.shards, n, ns.Name, state)
		}
		show(ch, g.underreplicated, s.Short, ns.Name)
	}
	if l := ns.Locator; l != nil {
		show(ch, g.located, l.Keys, ns.Name)
		show(ch, g.locatorBytes, l.Bytes, ns.Name)
		show(ch, g.stale, l.Stale, ns.Name)
	}
}

// flag is 1 for true.
func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// missing is how many records are lost; -1: that is not known.
func missing(l *status.Lost) int64 {
	switch {
	case l == nil:
		return 0
	case l.Records == 0: // none is missing, but some may be older ones
		return -1
	}
	return l.Records
}

// unixSeconds is 0 for the zero time.
func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
