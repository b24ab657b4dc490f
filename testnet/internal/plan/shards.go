package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
)

// A namespace that is cut into shards: its setting, the events that it takes, and what its
// random lines draw.

// parseShards reads "8 replicas 2 placement hash", or "placement prefix k1=3 k2=0": the table of
// prefixes with their shards; and "locator" behind it.
func (p *Plan) parseShards(rest string) (err error) {
	words := strings.Fields(rest)
	if p.Locator = len(words) > 5 && words[len(words)-1] == "locator"; p.Locator {
		words = words[:len(words)-1]
	}
	if len(words) < 5 || words[1] != "replicas" || words[3] != "placement" || words[4] != placement.Prefix.String() && len(words) > 5 {
		return fmt.Errorf("%q: want the numbers and the rule, as in shards 8 replicas 2 placement hash, or … placement prefix k1=3 k2=0", rest)
	}
	if words[4] != placement.Hash.String() && words[4] != placement.Prefix.String() {
		return fmt.Errorf("placement %q: want %s or %s", words[4], placement.Hash, placement.Prefix)
	}
	if p.Shards, err = number("shards", words[0], 2, maxShards); err != nil {
		return err
	}
	if p.Replicas, err = number("replicas", words[2], 1, placement.MaxReplicas); err != nil {
		return err
	}
	for _, line := range words[5:] {
		prefix, to, found := strings.Cut(line, "=")
		if !found {
			return fmt.Errorf("%q: want a prefix and its shard, as in k1=3", line)
		}
		shard, err := number("the shard of a prefix", to, 0, maxShards-1)
		if err != nil {
			return err
		}
		p.Prefixes = append(p.Prefixes, placement.PrefixShard{Prefix: []byte(prefix), Shard: placement.Shard(shard)})
	}
	if words[4] == placement.Prefix.String() && len(p.Prefixes) == 0 {
		return errors.New("placement prefix: want at least one prefix and its shard, as in k1=3")
	}
	return p.Rule().Validate()
}

// Rule is how the namespace is cut into shards; nil: it is not.
func (p *Plan) Rule() *placement.Rule {
	if p.Shards == 0 {
		return nil
	}
	rule := &placement.Rule{Kind: placement.Hash, Shards: p.Shards, Replicas: p.Replicas, Prefixes: p.Prefixes, Locator: p.Locator}
	if len(p.Prefixes) > 0 {
		rule.Kind = placement.Prefix
	}
	return rule
}

// printShards prints what parseShards reads.
func (p *Plan) printShards() string {
	line := fmt.Sprintf("shards %d replicas %d placement %s", p.Shards, p.Replicas, p.Rule().Kind)
	for _, to := range p.Prefixes {
		line += fmt.Sprintf(" %s=%d", to.Prefix, to.Shard)
	}
	if p.Locator {
		line += " locator"
	}
	return line
}

// maxShards is the most shards of a run: a node keeps a live sketch of each that it holds.
const maxShards = 64

// sharded are the verbs of a namespace that is cut into shards. The others ask a node for
// all that the namespace holds, or damage what one set keeps.
var sharded = []Verb{
	Put, Del, Get, Sync, Join, Remove, Lapse, Crash, CrashAt, CrashAnswering, Start, Freeze, Cut, Heal, Partition, HealAll, Loss, Copy, Restore, RestoreBackup, Skew, StopClock, Hide, Invent, New, Expand,
}

// cutAck takes "ack 2" off the end of what is written. The last words of a
// quoted value end with its quote and are no ack.
func (e *Event) cutAck(rest string) string {
	if e.Verb != Put && e.Verb != Del {
		return rest
	}
	before, last := cutLastWord(rest)
	ack, err := quorum.ParseLevel(strings.Replace(last, "majority", "quorum", 1))
	if before, word := cutLastWord(before); err == nil && last != "" && word == "ack" {
		e.Ack = ack.String()
		return before
	}
	return rest
}

// checkShards says what is wrong with an event in a namespace that is cut into shards, or in
// one that is not.
func (e *Event) checkShards(p *Plan) error {
	cut := p.Shards > 0
	switch {
	case cut && !slices.Contains(sharded, e.Verb):
		return fmt.Errorf("%s: a namespace that is cut into shards takes %s", e.Verb, join(sharded))
	case cut && e.Verb == Expand && e.Random.Asks+e.Random.Watches > 0:
		return errors.New("a namespace that is cut into shards takes no drawn asks and watches")
	case (e.Verb == Hide || e.Verb == Invent) && !p.Locator:
		return fmt.Errorf("%s: only with a locator do hosts tell which keys they have", e.Verb)
	case !cut && (e.Verb == Get || e.Ack != "" || e.Random.Gets > 0):
		return errors.New("get and ack are for a namespace that is cut into shards: give it the setting shards")
	}
	return nil
}

// shardWrite draws write n of a line, as write does.
func (p *Plan) shardWrite(e *Event, n int) Event {
	d := p.draw("shard write", e.At, n)
	w := Event{At: e.At + d.within(e.For), Node: d.IntN(p.Nodes), Verb: Put, Key: e.Random.key(d)}
	if d.IntN(5) == 0 {
		w.Verb = Del
	} else {
		w.Size = d.size(e.Random.size())
	}
	switch kind := d.IntN(6); {
	case kind == 0:
		w.Ack = "majority"
	case kind == 1:
		w.Ack = "all"
	case kind == 2 && p.Replicas > 1:
		w.Ack = "2"
	}
	return w
}

// get draws read n of a line.
func (p *Plan) get(e *Event, n int) Event {
	d := p.draw("get", e.At, n)
	return Event{At: e.At + d.within(e.For), Node: d.IntN(p.Nodes), Verb: Get, Key: e.Random.key(d)}
}

// gets draws the reads of a line. A quarter of them come in bursts at one node: what the first one of a burst brings to
// it, such as a list of members, comes while the others wait for answers.
func (p *Plan) gets(e *Event) (made []Event) {
	for n := range e.Random.Gets {
		g := p.get(e, n)
		if first := n - n%burst; first < n && p.draw("burst", e.At, first).IntN(4) == 0 {
			g.Node, g.At = made[first].Node, made[first].At+p.draw("burst", e.At, n).within(burstFor)
		}
		made = append(made, g)
	}
	return made
}

const (
	burst    = 8 // reads, at most
	burstFor = 100 * time.Millisecond
)

// key draws a key, some much more often than others.
func (r *Random) key(d *draw) string {
	return "k" + strconv.Itoa(min(d.IntN(r.keys()), d.IntN(r.keys())))
}

// shards makes the plan one of a namespace that is cut into shards, of which members come
// and go.
func (p *Plan) shards(line *Event) {
	d := p.draw("shards", 0, 0)
	p.Shards = 1 << (1 + d.IntN(4))
	p.Replicas = min(1+d.IntN(3), p.Nodes)
	p.Push = d.IntN(4) > 0
	line.Random.Gets = 20 + d.IntN(100)
	line.Random.Syncs = 0
	p.Locator = d.IntN(3) == 0 // of what is drawn the last, so that runs without one stay as they were
}

// comings draws a member that is removed for good, and one that joins again: never the
// founder, which gives the tickets.
func (p *Plan) comings(line *Event) (events []Event) {
	d := p.draw("comings", 0, 0)
	if p.Nodes < 3 {
		return nil
	}
	gone := 1 + d.IntN(p.Nodes-1)
	if d.IntN(2) == 0 {
		events = append(events, Event{At: line.At + line.For/4 + d.within(line.For/2), Verb: Remove, Node: 0, Peer: gone})
	}
	if d.IntN(3) == 0 { // it comes back
		at := line.At + line.For/8
		if len(events) > 0 {
			at = events[0].At + d.within(line.For/4)
		}
		events = append(events, Event{At: at, Verb: Join, Node: gone, Peer: 0})
	}
	return events
}
