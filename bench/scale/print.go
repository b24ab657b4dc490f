package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/syncd-io/syncd/internal/locator"
)

const (
	day = 24 * 3600 // seconds
	// envelope is what a question and its answer take beside their messages (docs/protocol, "Routed questions").
	envelope = 118 + 100
)

// print writes the model.
func (o *options) print(out io.Writer, p plan, t told) error {
	scale := float64(o.keys) / float64(o.built)
	// A set of more keys has shorter gaps: log2 of how many times as many, a key.
	up := float64(t.bytes)/float64(o.built) - math.Log2(scale)/8
	index, disk := float64(t.index)/float64(o.built), float64(t.disk)/float64(o.built)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(what, how string, format string, args ...any) {
		fmt.Fprintf(w, "| %s\t %s\t %s |\n", what, fmt.Sprintf(format, args...), how)
	}
	fmt.Fprintf(w, "| %d nodes, %s keys, %d shards of %d hosts\t \t |\n| ---\t ---\t --- |\n", o.nodes, count(o.keys), o.shards, o.replicas)
	row("table of the layout", "planned", "%s", size(float64(p.table)))
	row("nodes that have a shard; shards of the fullest", "planned", "%d; %d", p.hosts, p.most)
	row("bytes a key to bring a locator up", fmt.Sprintf("run with %s keys", count(o.built)), "%.2f", float64(t.bytes)/float64(o.built))
	row("the same, at all keys", "computed from that", "%.2f; %s in all", up, size(up*float64(o.keys)))
	row("bytes a key in memory; of them for changes (a 32nd of the keys is new)", "run", "%.2f; %.2f", index, float64(t.exact)/float64(o.built))
	row("the same, at all keys", "computed", "%s", size(index*float64(o.keys)))
	row("copies on disk", "run; computed", "%.2f bytes a key; %s", disk, size((disk-math.Log2(scale)/8)*float64(o.keys)))
	row("processor's time to tell, write and build", "run, the host's part and the node's", "%.1f s", t.build.Seconds())
	row("look-up, the processor's time", "run", "%d ns", t.lookup.Nanoseconds())
	row("keys that are there, and would not be asked for", "run", "%d of %s", t.wrong, count(t.hits))
	row("misses without a request", "run", "%.4f %%", 100*(1-float64(t.asked)/float64(t.misses)))
	row("bytes of a change", "run", "%d", t.event)
	changes := (o.fresh + o.gone) * float64(o.keys)
	events := changes * float64(t.event)
	row("changes a node a day", fmt.Sprintf("modelled: %.0f %% new, %.0f %% deleted and collected", 100*o.fresh, 100*o.gone), "%s, %s", count(int(changes)), size(events))
	row("hosts at which it follows all sets", "run, by the layout that was planned", "%d", t.hosts)
	round := float64(t.poll + t.hosts*(envelope+2*o.header))
	row("bytes of a poll of each, and of the answers", fmt.Sprintf("run: %d, and %d of envelopes each; modelled: 2 × %d of headers each", t.poll, envelope, o.header), "%s", size(round))
	for _, c := range []struct {
		every time.Duration
		what  string
	}{{locator.PollIdle, "at rest"}, {locator.PollBusy, "while reads at level one ask the locator"}} {
		row(fmt.Sprintf("locator traffic a node a day, %s (polls each %.0f s)", c.what, c.every.Seconds()), "the sum", "%s", size(events+day/c.every.Seconds()*round))
	}
	row("the same keys at other hosts, of all sets, by their pages", "run; computed", "%s", size(float64(t.move)/float64(o.built)*float64(o.keys)))
	shard := float64(o.keys) / float64(o.shards) * float64(o.value)
	row("a shard", fmt.Sprintf("modelled: records of %d bytes", o.value), "%s", size(shard))
	row("loss of the fullest host: shards with a host less; places that move, without need", "planned", "%d; %d, %d", p.degraded, p.moved, p.moved-p.lost)
	row("most that a node takes over; gives", "planned", "%d; %d", p.most2, p.sources)
	row("time to re-replicate", fmt.Sprintf("modelled: %.0f Mbit/s each way", o.link*8/1e6), "%.0f s", shard*float64(max(p.most2, p.sources))/o.link)
	return w.Flush()
}

func count(n int) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0 || n >= 10_000_000:
		return fmt.Sprintf("%.4g million", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}

func size(bytes float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if bytes >= u.of {
			return fmt.Sprintf("%.3g %s", bytes/u.of, u.name)
		}
	}
	return fmt.Sprintf("%.0f bytes", bytes)
}
