package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/syncd-io/syncd/internal/directory"
)

const (
	day = 24 * 3600 // seconds

	// As the node has them: how many hosts answer once they have news, and after how many
	// seconds it polls the others again.
	waiting, inTurn = 64, 2
	// seldom is after how many seconds a node polls that has misses ask.
	seldom = 60
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
	row("bytes a key in memory; of them for changes (a 32nd of the keys is new)", "run", "%.2f; %.2f", index, float64(t.run)/float64(o.built))
	row("the same, at all keys", "computed", "%s", size(index*float64(o.keys)))
	row("copies on disk", "run; computed", "%.2f bytes a key; %s", disk, size((disk-math.Log2(scale)/8)*float64(o.keys)))
	row("processor's time to tell, write and build", "run, the host's part and the node's", "%.1f s", t.build.Seconds())
	row("look-up, the processor's time", "run", "%d ns", t.lookup.Nanoseconds())
	row("keys that are there, and would not be asked for", "run", "%d of %s", t.wrong, count(t.hits))
	row("misses without a request", "run", "%.4f %%", 100*(1-float64(t.asked)/float64(t.misses)))
	row("bytes of a change, with its set's sum", "run", "%d", t.event)
	changes := (o.fresh + o.gone) * float64(o.keys)
	// What is new is pushed by each host of its set.
	events := changes * float64(o.replicas) * float64(t.event)
	row("changes a node a day", fmt.Sprintf("modelled: %.0f %% new, %.0f %% deleted and collected", 100*o.fresh, 100*o.gone), "%s, %s", count(int(changes)), size(events))
	// A node has some hosts answer once they have news, and polls the others in turn; or all of
	// them in turn, where misses may take a request.
	waits := min(waiting, p.hosts)
	fresh := day/directory.MaxWait.Seconds()*float64(waits) + day/inTurn*float64(p.hosts-waits)
	for _, c := range []struct {
		polls     float64
		how, what string
	}{
		{fresh, fmt.Sprintf("%d wait %.1f s for news, the others each %d s", waits, directory.MaxWait.Seconds(), inTurn), "so that misses need no request"},
		{day / seldom * float64(p.hosts), fmt.Sprintf("each %d s", seldom), "each miss is a request"},
	} {
		bytes := c.polls * float64(t.poll+t.news+2*o.header)
		row(fmt.Sprintf("polls a node a day, %s (%s)", c.how, c.what), fmt.Sprintf("run: %d + %d bytes; modelled: 2 × %d of headers", t.poll, t.news, o.header), "%s, %s", count(int(c.polls)), size(bytes))
		row("locator traffic a node a day, "+c.what, "the sum", "%s", size(events+bytes))
	}
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
