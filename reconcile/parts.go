package reconcile

import (
	"fmt"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Differences too many for one stream of cells go in parts. The responder tells the
// sums of its ranges, and that is the end of this sync. The initiator then syncs each
// span of those that differ by itself. What a broken sync has made equal is not looked
// at again.

// Split says where two sides differ that are to be synced in parts.
type Split struct {
	// Ranges are those that differ, ascending; nil at the responder, which is not told.
	Ranges []dbadapter.Range
	// Estimate is about how many differences they have in all.
	Estimate int64
}

// Spans cuts the ranges that differ into neighbouring ones with about size differences
// each. It makes at least two if there is more than one range, so that a span that is
// split has smaller parts.
func (s *Split) Spans(size int64) []wire.Span {
	n := int64(len(s.Ranges))
	each := max(1, size*n/max(s.Estimate, 1))
	each = min(each, max(1, (n+1)/2))
	var spans []wire.Span
	for part := range slices.Chunk(s.Ranges, int(each)) {
		spans = append(spans, wire.Span{From: part[0], To: part[len(part)-1] + 1})
	}
	return spans
}

// many reports whether the differences are expected to be too many for one stream of
// cells. A single range is not split any further.
func (b *responder) many() bool {
	return b.link.report.Estimate >= b.opts.partsFrom() && b.hello.Span.Len() > 1
}

// splits reports whether a decode that has come to its bound is to go on in parts:
// two small sets are sent as a whole.
func (b *responder) splits() bool {
	most := min(b.here.Records, math.MaxInt64/2) + min(b.there.Records, math.MaxInt64/2)
	return most >= uint64(b.opts.partsFrom()) && b.hello.Span.Len() > 1
}

func (o *Options) partsFrom() int64 {
	if o.PartsFrom > 0 {
		return o.PartsFrom
	}
	return PartsFrom
}

// split tells the sums of the responder's ranges.
func (b *responder) split() error {
	b.replica.Decoded()
	b.link.report.Method = wire.MethodParts
	from, to := b.hello.Span.All()
	sums := make([]uint64, 0, to-from)
	for r := from; r < to; r++ {
		sums = append(sums, folded(b.replica.Ranges(r, r+1)))
	}
	if err := b.link.send(&wire.Sums{Sums: sums}); err != nil {
		return err
	}
	if err := b.link.send(&wire.Result{Method: wire.MethodParts, Estimate: uint64(b.link.report.Estimate)}); err != nil {
		return err
	}
	b.link.report.Split = &Split{Estimate: b.link.report.Estimate}
	return nil
}

// folded is what a Sums tells of a range. All that is kept of the range is in it. If a
// part of that is damaged, the range is one that differs, and its own sync repairs it.
func folded(s dbadapter.Sum) uint64 {
	return s.Records ^ s.Digest[0] ^ s.Digest[1] ^ s.Digest[2] ^ s.Digest[3]
}

// noteSums reads the sums of the responder's ranges.
func (a *initiator) noteSums(m *wire.Sums) error {
	if len(a.sums) > 0 || a.plan.size() > 0 || len(m.Sums) != a.opts.Span.Len() || len(m.Sums) == 1 {
		return violation("sums of %d ranges in a sync of %d", len(m.Sums), a.opts.Span.Len())
	}
	a.sums = m.Sums
	return nil
}

// split finds the ranges that differ.
func (a *initiator) split(m *wire.Result) error {
	s := &Split{}
	from, _ := a.opts.Span.All()
	for n, theirs := range a.sums {
		if r := from + dbadapter.Range(n); folded(a.replica.Ranges(r, r+1)) != theirs {
			s.Ranges = append(s.Ranges, r)
		}
	}
	if len(s.Ranges) == 0 {
		return fmt.Errorf("%w: the digests differ, and those of no range do", ErrNotVerified)
	}
	most := min(a.here.Records, 1<<61) + min(a.there.Records, 1<<61)
	s.Estimate = int64(min(m.Estimate, most))
	r := a.link.report
	r.Method, r.Estimate, r.Split = wire.MethodParts, s.Estimate, s
	return nil
}
