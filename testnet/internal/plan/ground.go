package plan

import (
	"strconv"
	"time"
)

// Bounds of the keys that are ground to one index in a drawn plan. They are as few as
// the index takes, or up to three times as many. A key is never found again for another
// node, so that all nodes together have more than one of them may hold.
const (
	maxGrinds = 5
	minGround = 6
	maxGround = 40
)

// grinding draws the writes of ground keys, in addition to those of a line: batches of
// new keys at any nodes, and then single writes of these.
func (p *Plan) grinding(line *Event) (made []Event) {
	d := p.draw("grinding", line.At, 0)
	for n := range 2 + d.IntN(maxGrinds-1) {
		b := Event{At: line.At + d.within(line.For), Verb: Batch, Node: d.IntN(p.Nodes), Key: p.Ground + string(rune('a'+n))}
		b.Amount = int64(minGround + d.IntN(maxGround-minGround+1))
		b.Size = d.size(200)
		made = append(made, b)
		for range d.IntN(8) {
			w := Event{Node: d.IntN(p.Nodes), Key: b.Key + strconv.Itoa(d.IntN(int(b.Amount)))}
			w.At = b.At + d.within(max(time.Millisecond, line.At+line.For-b.At))
			switch d.IntN(8) {
			case 0, 1, 2:
				w.Verb = Del
			case 3:
				w.Verb = Touch
			case 4:
				w.Verb, w.Size = Dated, d.size(200)
			case 5:
				w.Verb, w.Size = Expiring, d.size(200)
				w.For = time.Duration(d.scale(max(1, line.For.Milliseconds()))) * time.Millisecond
			default:
				w.Verb, w.Size = Put, d.size(200)
			}
			made = append(made, w)
		}
	}
	return made
}
