package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// A namespace that is cut into shards: its setting, the events that it takes, and what its
// random lines draw.

// parseShards reads "8 replicas 2 placement hash", with "locator" behind it or not. "placement
// prefix k1=3 k2=0" is the table of prefixes with their shards. "placement writer 100B" is up
// to what size values are in their records.
func (p *Plan) parseShards(rest string) (err error) {
	words := strings.Fields(rest)
	if p.Locator = len(words) > 5 && words[len(words)-1] == "locator"; p.Locator {
		words = words[:len(words)-1]
	}
	kind := placement.Hash
	if len(words) > 4 {
		kind, err = placement.ParseKind(words[4])
	}
	switch {
	case len(words) < 5 || words[1] != "replicas" || words[3] != "placement" || kind == placement.Hash && len(words) > 5 || kind == placement.Writer && len(words) != 6:
		return fmt.Errorf("%q: want the numbers and the rule, as in shards 8 replicas 2 placement hash, … placement prefix k1=3 k2=0, or … placement writer 100B", rest)
	case err != nil:
		return err
	}
	if p.Shards, err = number("shards", words[0], 2, maxShards); err != nil {
		return err
	}
	if p.Replicas, err = number("replicas", words[2], 1, placement.MaxReplicas); err != nil {
		return err
	}
	if p.Writer = kind == placement.Writer; p.Writer {
		if p.Inline, err = byteSize("size", words[5]); err != nil {
			return err
		}
		return p.Rule().Validate()
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
	if kind == placement.Prefix && len(p.Prefixes) == 0 {
		return errors.New("placement prefix: want at least one prefix and its shard, as in k1=3")
	}
	return p.Rule().Validate()
}

// Rule is how the namespace is cut into shards; nil: it is not.
func (p *Plan) Rule() *placement.Rule {
	if p.Shards == 0 {
		return nil
	}
	rule := &placement.Rule{Kind: placement.Hash, Shards: p.Shards, Replicas: p.Replicas, Prefixes: p.Prefixes, Locator: p.Locator || p.Writer, Inline: p.Inline}
	switch {
	case p.Writer:
		rule.Kind = placement.Writer
	case len(p.Prefixes) > 0:
		rule.Kind = placement.Prefix
	}
	return rule
}

// printShards prints what parseShards reads, if the namespace is cut.
func (p *Plan) printShards() string {
	if p.Shards == 0 {
		return ""
	}
	line := fmt.Sprintf("%d replicas %d placement %s", p.Shards, p.Replicas, p.Rule().Kind)
	for _, to := range p.Prefixes {
		line += fmt.Sprintf(" %s=%d", to.Prefix, to.Shard)
	}
	if p.Writer {
		line += " " + size(p.Inline)
	}
	if p.Locator {
		line += " locator"
	}
	return line
}

// maxShards is the most shards of a run: a node keeps a live sketch of each that it holds.
const maxShards = 64

// checkShards says what is wrong with an event in a namespace that is cut into shards, or in
// one that is not.
func (e *Event) checkShards(p *Plan) error {
	isCut, in := p.Shards > 0, verbTable[e.Verb].in
	switch {
	case isCut && in == onlyWhole:
		return fmt.Errorf("%s: a namespace that is cut into shards takes %s", e.Verb, join(slices.DeleteFunc(Verbs(), func(v Verb) bool { return verbTable[v].in == onlyWhole })))
	case isCut && e.Random.Asks > 0:
		return errors.New("a namespace that is cut into shards takes no drawn asks")
	case (e.Verb == Hide || e.Verb == Invent) && !p.Locator:
		return fmt.Errorf("%s: only with a locator do hosts tell which keys they have", e.Verb)
	case e.Verb == Reindex && !p.Writer:
		return errors.New("reindex: only by placement writer are there bodies")
	case !isCut && (in == onlyCut || e.Ack != "" || e.Random.Gets > 0):
		return errors.New("get, scan, putif, import, ack and read are for a namespace that is cut into shards: give it the setting shards")
	}
	return nil
}

// shardWrite draws write n of a line, as write does.
func (p *Plan) shardWrite(e *Event, n, left int) Event {
	d := p.draw("shard write", e.At, n)
	w := Event{At: e.At + d.within(e.For), Node: d.IntN(p.Nodes), Verb: Put, Key: e.Random.key(d)}
	switch kind := d.IntN(20); {
	case kind < 4:
		w.Verb = Del
	case kind < 7:
		w.Verb = PutIf
	case kind < 9:
		w.Verb = Expiring
		w.For = time.Duration(d.scale(max(1, e.For.Milliseconds()))) * time.Millisecond
	case kind == 9:
		w.Verb = Dated
	case kind == 10 && left > 1:
		w.Verb, w.Amount = Batch, int64(min(left, 2+d.IntN(3)))
	case kind == 11 && left > 1:
		w.Verb, w.Amount, w.Key = Import, int64(min(left, 2+d.IntN(maxDrawnBatch))), "k"
	}
	if w.Verb != Del {
		w.Size = d.size(e.Random.size())
	}
	switch kind := d.IntN(8); {
	case kind < 2:
		w.Ack = One
	case kind == 2:
		w.Ack = All
	case kind == 3 && p.Replicas > 1:
		w.Ack = "2"
	}
	return w
}

// get draws read n of a line.
func (p *Plan) get(e *Event, n int) Event {
	d := p.draw("get", e.At, n)
	g := Event{At: e.At + d.within(e.For), Node: d.IntN(p.Nodes), Verb: Get, Key: e.Random.key(d)}
	switch d.IntN(8) {
	case 0, 1:
		g.Read = One
	case 2:
		g.Read = All
	case 3:
		g.Read, g.AtLeast = One, true
	case 4:
		if n%scanEvery == 0 {
			g.Verb, g.Key = Scan, ""
		}
	}
	return g
}

const scanEvery = 4 // of the reads that are drawn for it

// gets draws the reads of a line. A quarter of them come in bursts at one node. What the first
// one of a burst brings to it, such as a list of members, comes while the others wait for
// answers.
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

// placed is when the first layout is stated, and some rounds of syncs later its hosts have taken over.
const placed = 2 * time.Minute

// replicas is how many hosts a shard has; most have three.
var replicas = []int{1, 2, 3, 3, 3, 3, 4, 5}

// shards makes the plan one of a namespace that is cut into shards, of which members come
// and go.
func (p *Plan) shards(line *Event) {
	d := p.draw("shards", 0, 0)
	p.Shards = 1 << (1 + d.IntN(4))
	p.Replicas = min(replicas[d.IntN(len(replicas))], p.Nodes)
	p.Push = d.IntN(4) > 0
	line.Random.Gets = 20 + d.IntN(100)
	line.Random.Syncs = 0
	p.Locator = d.IntN(3) == 0 // of what is drawn the last, so that runs without one stay as they were
	if d.IntN(5) == 0 {
		line.Random.Watches, p.Log = p.watches()
		line.Random.Watches = min(line.Random.Watches, 2) // each asks a host of each shard every second
	}
}

// writer makes the plan one by placement writer. In half of them an hour passes, without what asks hosts
// each second, which would take long here.
func (p *Plan) writer(line *Event) (rests bool) {
	d := p.draw("writer", 0, 0)
	p.Writer, p.Inline = true, d.size(min(line.Random.Size, 1<<10))
	if d.IntN(2) == 0 {
		p.Inline = 0
	}
	line.Random.Keys = min(line.Random.Keys, 1+d.IntN(20)) // so that they are overwritten
	line.Random.Writes = min(line.Random.Writes, 100)
	if rests = line.Random.Watches == 0 && d.IntN(2) == 0; rests {
		p.Every, p.Locator = time.Minute+d.within(time.Minute), false
		line.For = max(line.For, 2*time.Minute)
	}
	return rests
}

// rests lets about an hour pass within a line: then bodies are collected.
func (p *Plan) rests(line *Event) {
	d := p.draw("rests", 0, 0)
	from, rest := line.At+d.within(line.For), 50*time.Minute+d.within(30*time.Minute)
	for i := range p.Events {
		if e := &p.Events[i]; e.At >= from {
			e.At += rest
		}
	}
	if behind := []Verb{Copy, Crash, 0}[d.IntN(3)]; behind != 0 { // a host that is an hour behind then
		back := Event{At: from + rest + d.within(time.Minute), Verb: Start, Node: 1 + d.IntN(p.Nodes-1)}
		if behind == Copy {
			back.Verb = RestoreBackup
		}
		p.Events = append(p.Events, Event{At: from, Verb: behind, Node: back.Node}, back)
	}
	if d.IntN(3) == 0 {
		p.Events = append(p.Events, Event{At: from + rest + d.within(time.Minute), Verb: Reindex, Node: d.IntN(p.Nodes)})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// comings draws what becomes of members: never of the founder, which gives the tickets.
func (p *Plan) comings(line *Event) (events []Event) {
	if p.Nodes < 3 {
		return nil
	}
	d := p.draw("comings", 0, 0)
	at := func(from, to int) time.Duration { // in eighths of the line
		return line.At + line.For*time.Duration(from)/8 + d.within(line.For*time.Duration(to-from)/8)
	}
	gone := 1 + d.IntN(p.Nodes-1)
	if d.IntN(2) == 0 && p.Replicas > 1 { // without its one host nothing is left of a shard
		events = append(events, Event{At: at(2, 6), Verb: Remove, Node: 0, Peer: gone})
	}
	if d.IntN(3) == 0 { // it comes back
		again := at(1, 2)
		if len(events) > 0 {
			again = events[0].At + d.within(line.For/4)
		}
		events = append(events, Event{At: again, Verb: Join, Node: gone, Peer: 0})
	}
	if d.IntN(2) == 0 && p.Replicas > 1 { // a member is away, lapses, and returns
		away := 1 + d.IntN(p.Nodes-1)
		down := at(1, 5)
		lapse := down + d.within(line.For/8)
		events = append(
			events, Event{At: down, Verb: Crash, Node: away}, Event{At: lapse, Verb: Lapse, Node: 0, Peer: away},
			Event{At: lapse + d.within(line.For/2), Verb: Start, Node: away},
		)
	}
	if d.IntN(4) == 0 && p.Replicas > 1 {
		events = append(events, p.apart(line, d)...)
	}
	return events
}

// apart draws two admins who change members while they do not reach each other. In half of the plans the one
// removes the other: what that one states becomes void.
func (p *Plan) apart(line *Event, d *draw) (events []Event) {
	admin := 1 + d.IntN(p.Nodes-1)
	from := line.At + line.For/8 + d.within(line.For/2)
	to := from + time.Second + d.within(line.For/4)
	sides := [2][]int{{0}, {admin}}
	for i := 1; i < p.Nodes; i++ {
		if i != admin {
			side := d.IntN(2)
			sides[side] = append(sides[side], i)
		}
	}
	events = append(
		events, Event{At: line.At, Verb: SetRole, Node: 0, Peer: admin, Key: "admin"},
		Event{At: from, Verb: Partition, Key: groupText([][]int{sides[0], sides[1]})}, Event{At: to, Verb: HealAll},
	)
	changes := []Verb{Remove, Remove, Lapse}
	for side, by := range []int{0, admin} {
		change := Event{At: from + d.within(to-from), Verb: changes[d.IntN(len(changes))], Node: by, Peer: 1 + d.IntN(p.Nodes-1)}
		if side == 0 && d.IntN(2) == 0 {
			change.Verb, change.Peer = Remove, admin
		}
		if change.Peer != by {
			events = append(events, change)
		}
	}
	return events
}
