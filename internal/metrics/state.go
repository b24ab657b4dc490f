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
type Locator struct{ Keys, Bytes, Unheard int }

// gauges are read from a State.
type gauges struct {
	all []*prometheus.Desc

	running, offset, storage, free, pausedPeers, trouble, findings, damaged *prometheus.Desc
	records, members, connected, twins, age, paused, queue                  *prometheus.Desc
	rejected, conflicts, setAside, lost, drift, waiting, mark, floor        *prometheus.Desc
	shards, short, located, locatorBytes, unheard                           *prometheus.Desc
}

func newGauges() (g gauges) {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(name, help, labels, nil)
		g.all = append(g.all, d)
		return d
	}
	g.running = gauge("syncd_running_syncs", "Syncs that are running.")
	g.offset = gauge("syncd_clock_offset_seconds", "How far this machine's clock is ahead of the median of its peers'; absent if no clock was measured in the last hour.")
	g.storage = gauge("syncd_storage_bytes", "What the files in the data directory take on the disk.")
	g.free = gauge("syncd_storage_free_bytes", "What is free on the disk of the data directory.")
	g.pausedPeers = gauge("syncd_paused_peers", "Peers that a person has paused on this node.")
	g.trouble = gauge("syncd_troubles", "1 while the node is in a state in which it cannot do its work, else 0; each is in the log and in syncd status.", "kind")
	g.findings = gauge("syncd_damage_findings_total", "How often damage to the store was met, by reads, writes, syncs, audits and readings of files; without the name of a namespace where none could be told.", "ns")
	g.damaged = gauge("syncd_damaged", "1 where damage to the store was met, and neither a verification nor a repair has shown since that it is healed.", "ns")

	g.records = gauge("syncd_records", "Records held, tombstones included.", "ns")
	g.members = gauge("syncd_members", "Members in the list of this node.", "ns")
	g.connected = gauge("syncd_connected_members", "Other members of the namespace to which there is a connection.", "ns")
	g.twins = gauge("syncd_twins", "Members whose identity two nodes run with, this node included.", "ns")
	g.age = gauge("syncd_verified_sync_age_seconds", "Time since a sync of everything has last proved the records equal to another member's, kept over restarts; before the first one, since the namespace was made, joined or restored here. Absent while this node is the only member.", "ns")
	g.paused = gauge("syncd_paused_namespaces", "1 for a namespace that a person has paused on this node, else 0.", "ns")
	g.queue = gauge("syncd_push_queue_bytes", "Bytes of this node's writes that wait to be pushed; those that go to members directly count once for each member.", "ns")

	g.rejected = gauge("syncd_rejected_records", "Records of peers that were refused and are remembered.", "ns")
	g.conflicts = gauge("syncd_conflict_records", "Records kept because one whose writer had not seen them took their place.", "ns")
	g.setAside = gauge("syncd_set_aside_records", "Records kept because they were set aside.", "ns")
	g.lost = gauge("syncd_lost_records", "Records that are missing since damage was repaired, and that no member gave back; -1 where it is not known how many.", "ns")
	g.drift = gauge("syncd_drift_total", "How often what the node keeps of its records for syncs was found to be wrong by an audit, and was put right.", "ns")
	g.waiting = gauge("syncd_waiting_records", "Tombstones and records that expire, at most: they wait until all members are past them.", "ns")
	g.mark = gauge("syncd_watermark_timestamp_seconds", "Up to when all members hold what was written; 0 if that is not known.", "ns")
	g.floor = gauge("syncd_floor_timestamp_seconds", "Up to when deleted and expired records have been collected; 0 for never.", "ns")

	g.shards = gauge("syncd_held_shards", "Shards of a namespace that is cut into them: those that this node holds (held), those among them of which it has all that it must have (whole), those that it is a host of and does not hold, or is not whole of yet (fetching), and those that it holds until a majority of their new hosts has them (dropping); and those that move, of all members (moving).", "ns", "state")
	g.short = gauge("syncd_short_shards", "Shards that fewer of their hosts say to hold than there are to be replicas, as far as this node has heard.", "ns")
	g.located = gauge("syncd_locator_keys", "Keys of other hosts' shards that the locator knows.", "ns")
	g.locatorBytes = gauge("syncd_locator_bytes", "Memory of the locator.", "ns")
	g.unheard = gauge("syncd_locator_unheard_shards", "Shards whose keys were not heard for five seconds: level-one reads of a key that is not there ask hosts. While nobody reads at level one, that is so most of the time.", "ns")
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
	showCount(ch, g.drift, ns.Drifted, ns.Name)
	show(ch, g.waiting, ns.Collection.Waiting, ns.Name)
	show(ch, g.mark, unixSeconds(ns.Collection.Mark), ns.Name)
	show(ch, g.floor, unixSeconds(ns.Collection.Floor), ns.Name)

	if s := ns.Shards; s != nil {
		for state, n := range map[string]int{"held": s.Held, "whole": s.Whole, "fetching": s.Fetching, "dropping": s.Dropping, "moving": s.Moving} {
			show(ch, g.shards, n, ns.Name, state)
		}
		show(ch, g.short, s.Short, ns.Name)
	}
	if l := ns.Locator; l != nil {
		show(ch, g.located, l.Keys, ns.Name)
		show(ch, g.locatorBytes, l.Bytes, ns.Name)
		show(ch, g.unheard, l.Unheard, ns.Name)
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
