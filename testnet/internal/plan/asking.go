package plan

import (
	"strconv"
	"time"
)

// eventsPerAsk is the most events of one question: four before it, the question, a crash of
// the member that answers it, and that member's start.
const eventsPerAsk = 7

// asks draws how many questions a plan has.
func (p *Plan) asks(profile Profile) int {
	d := p.draw("asks", 0, 0)
	switch {
	case profile == Live:
		return 4 + d.IntN(24)
	case (profile == Mixed || profile == Members) && d.IntN(2) == 0:
		return 1 + d.IntN(12)
	}
	return 0
}

// asking draws question n of a line.
func (p *Plan) asking(e *Event, n int) (made []Event) {
	d := p.draw("ask", e.At, n)
	q := Event{At: e.At + d.within(e.For)}
	q.Node, q.Peer = d.pair(p.Nodes)
	keys := e.Random.keys()
	key, answers := "k"+strconv.Itoa(min(d.IntN(keys), d.IntN(keys))), q.Peer
	switch kind := d.IntN(12); {
	case kind < 6:
		q.Verb, q.Key = Why, key
		made = p.occasion(d, e, &q)
	case kind < 7:
		q.Verb = Status
	case kind < 8:
		q.Verb = Wait
	case kind < 9:
		q.Verb, q.Peer = WaitAll, 0
	default:
		q.Verb, q.Key, q.Peer = WaitKey, key, 0
		q.Amount = int64(d.IntN(p.Nodes))
		if d.IntN(3) > 0 { // as put --wait does
			made = d.puts(e, &q, q.Node)
		}
	}
	if q.Verb != Why && q.Verb != Status {
		q.For = time.Duration(d.scale(max(1, 2*e.For.Milliseconds()))) * time.Millisecond
	}
	if made = append(made, q); d.IntN(5) == 0 {
		made = append(made, Event{At: q.At, Verb: CrashAnswering, Node: answers}, Event{At: q.At + d.within(e.For/4), Verb: Start, Node: answers})
	}
	return made
}

// written is by how much a question follows the write that it is about, which is durable by
// then and hardly anywhere else.
const written = 10 * time.Millisecond

// puts is a write of the key that a question is about, which is asked after it.
func (d *draw) puts(e, q *Event, node int) []Event {
	w := Event{At: q.At, Verb: Put, Node: node, Key: q.Key, Size: d.size(e.Random.size())}
	q.At += written
	return []Event{w}
}

// occasion draws what makes the two of a question differ. It is a write just before it at
// one of them, by a clock that is ahead, or by a node that was just denied to write.
func (p *Plan) occasion(d *draw, e, q *Event) (made []Event) {
	writer := q.Node
	if d.IntN(3) == 0 {
		writer = q.Peer
	}
	switch kind := d.IntN(8); {
	case kind < 3:
		return d.puts(e, q, writer)
	case kind == 3:
		del := Event{At: q.At, Verb: Del, Node: writer, Key: q.Key}
		q.At += written
		return []Event{del}
	case kind == 4:
		ahead := 2*p.Skew.Milliseconds() + d.scale(p.Skew.Milliseconds())
		made = append(made, Event{At: q.At, Verb: Skew, Node: writer, Amount: ahead})
		made = append(made, d.puts(e, q, writer)...)
		return append(made, Event{At: q.At, Verb: Skew, Node: writer, Amount: -ahead})
	case kind == 5 && e.Random.Members > 0:
		by := q.Peer
		if writer == q.Peer {
			by = q.Node
		}
		made = append(made, Event{At: q.At, Verb: SetRole, Node: by, Peer: writer, Key: "read"})
		made = append(made, d.puts(e, q, writer)...)
		return append(made, Event{At: q.At + time.Second, Verb: SetRole, Node: by, Peer: writer, Key: "write"})
	}
	return nil
}
