package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// tally counts the conversations of a course, and adds up what they did. It is for
// a sync that goes in parts, or that went on behind a key.
type tally struct {
	// running are those that are held, by their ranges, with their reports so far.
	running map[wire.Span]reconcile.Report
	// report is that of the last conversation about the data. Of a sync in several
	// conversations it is their sum. The last of them ended with err.
	report reconcile.Report
	err    error
	// failed ended the course; part is how the first part ended that was not proved.
	failed, part error
	unproved     bool // a part, in this round
	// several: the report is a sum.
	several bool
	// parts are those known so far, done those that are over. Up to now the sync of
	// everything has led to parts splits times. At the last of these, moved records
	// had travelled.
	parts, done, splits int
	moved               int
	// resumed is how often the sync went on behind a key.
	resumed int
}

// begun notes a conversation.
func (t *tally) begun(a Ask) {
	if t.running == nil {
		t.running = map[wire.Span]reconcile.Report{}
	}
	t.running[a.Span] = reconcile.Report{}
}

// whole reports whether a conversation is held that is not a part.
func (t *tally) whole() bool {
	_, whole := t.running[wire.Span{}]
	return whole
}

// over adds a conversation that has ended.
func (c *Course) over(a Ask, r reconcile.Report, err error) {
	delete(c.running, a.Span)
	if a.Control && !c.ask.Control {
		return
	}
	if a.Span != (wire.Span{}) {
		c.done++
		if r.Split == nil {
			c.part, c.unproved = cmp.Or(c.part, err), c.unproved || !r.Verified
		}
	} else {
		c.err = err
	}
	switch {
	case !c.several:
		c.report = r
		if r.Split != nil {
			c.report.ForecastBytes = r.WireBytesSent + r.WireBytesReceived
		}
	default:
		c.report = Sum(c.report, r)
		c.report.Verified = r.Verified
		if a.Span == (wire.Span{}) && r.Split == nil { // it has met again what was declined
			c.report.Rejected, c.report.DeclinedHere, c.report.DeclinedThere = r.Rejected, r.DeclinedHere, r.DeclinedThere
			c.report.DeclinedCollectable = r.DeclinedCollectable
		}
	}
	c.several = c.several || r.Split != nil || r.Behind
}

// divide plans the parts of a sync, or of a part of it. What follows them is a sync
// of everything, which proves both sides equal. A dry run would prove nothing more,
// and one direction leaves differences that lead to parts again.
func (c *Course) divide(a Ask, split *reconcile.Split) {
	moved := c.report.Applied + c.report.Sent
	var asks []Ask
	for _, span := range split.Spans(c.of.ns.node.bulk().PartSize) {
		part := a
		part.Span = span
		asks = append(asks, part)
	}
	c.parts += len(asks)
	if a.Span == (wire.Span{}) {
		// Once all that can travel has, what is declined may be enough to lead to parts.
		declined := split.Estimate <= int64(c.report.Rejected)*5/4
		if c.splits++; c.splits > maxSplits {
			c.err = reconcile.ErrBusy // more is written than can be synced
			return
		} else if c.splits > 1 && (declined || moved == c.moved) {
			c.report.Verified, c.report.Split = false, nil
			c.err = Proved(a, &c.report)
			return
		}
		c.moved, c.part, c.unproved = moved, nil, false
		c.report.Rejected, c.report.DeclinedHere, c.report.DeclinedThere, c.report.DeclinedCollectable = 0, reconcile.Reasons{}, reconcile.Reasons{}, 0
		if a.Direction == wire.Both && !a.DryRun {
			asks = append(asks, a)
		}
	}
	c.before(asks...)
}

// result is the report so far, and how the course has ended.
func (c *Course) result() (reconcile.Report, error) {
	r := c.report
	if !c.several {
		return r, cmp.Or(c.failed, c.err)
	}
	if c.splits > 0 {
		r.Method = wire.MethodParts
		if c.ask.DryRun || c.ask.Direction != wire.Both {
			r.Verified = !c.unproved && c.failed == nil && len(c.todo) == 0
		}
	}
	err := cmp.Or(c.failed, c.err)
	if err == nil && (c.ask.DryRun || c.ask.Direction != wire.Both) {
		err = c.part
	}
	return c.progress(r), err
}

// Progress notes how far a conversation is that is held, and returns the report of the
// whole sync so far.
func (c *Course) Progress(a Ask, r reconcile.Report) reconcile.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.several {
		return r
	}
	c.running[a.Span] = r
	total := c.report
	for _, span := range slices.SortedFunc(maps.Keys(c.running), func(a, b wire.Span) int { return cmp.Compare(a.From, b.From) }) {
		total = Sum(total, c.running[span])
	}
	if c.splits > 0 {
		total.Method = wire.MethodParts
	}
	return c.progress(total)
}

// progress says how many parts are over, and what the whole is expected to cost. A
// part ahead counts as much as one that is over.
func (c *Course) progress(r reconcile.Report) reconcile.Report {
	r.Parts, r.PartsDone, r.Split = c.parts, c.done, nil
	if c.splits > 0 && len(c.todo) > 0 {
		Forecast(&r)
	}
	return r
}

// Forecast says what the whole is expected to cost, of the report of the parts that are
// over.
func Forecast(r *reconcile.Report) {
	found := int64(r.Differences())
	if left := r.Estimate - found; left > 0 && found > 0 {
		r.ForecastBytes += int64(float64(r.ForecastBytes) / float64(found) * float64(left))
	}
}

// Sum adds up two conversations of one sync. Names, method and estimate are those of
// the first.
func Sum(a, b reconcile.Report) reconcile.Report {
	t := a
	t.Rounds += b.Rounds
	t.Cells += b.Cells
	t.SketchBytes += b.SketchBytes
	t.Working += b.Working
	t.RecordBytes += b.RecordBytes
	t.WireBytesSent += b.WireBytesSent
	t.WireBytesReceived += b.WireBytesReceived
	t.MissingHere += b.MissingHere
	t.MissingThere += b.MissingThere
	t.Mismatched += b.Mismatched
	t.Keys += b.Keys
	t.MoreKeys = t.MoreKeys || b.MoreKeys
	t.Applied += b.Applied
	t.Sent += b.Sent
	t.Rejected += b.Rejected
	for why := range t.DeclinedHere {
		t.DeclinedHere[why] += b.DeclinedHere[why]
		t.DeclinedThere[why] += b.DeclinedThere[why]
	}
	t.DeclinedCollectable += b.DeclinedCollectable
	t.DeclinedForFloor = b.DeclinedForFloor
	t.Theirs = b.Theirs
	t.Collected += b.Collected
	t.SetAside += b.SetAside
	t.Repair = a.Repair.Plus(b.Repair)
	t.Listed = slices.Concat(a.Listed, b.Listed)
	t.Listed = t.Listed[:min(len(t.Listed), reconcile.NamedRanges)]
	t.ForecastBytes += max(b.ForecastBytes, b.WireBytesSent+b.WireBytesReceived)
	t.DurationMS += b.DurationMS
	t.StepsMS = maps.Clone(a.StepsMS)
	for step, ms := range b.StepsMS {
		if t.StepsMS == nil {
			t.StepsMS = map[string]float64{}
		}
		t.StepsMS[step] += ms
	}
	return t
}
