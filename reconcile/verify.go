package reconcile

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step verify: a decode proves itself by the residuals. A side's residual is its
// digest less the digests of all its records under the decoded indices. What is left
// must be the part that both have in common. So the two residuals are equal exactly if
// the decoding explains the whole difference. The exceptions are a chance of 2^-256 and
// members that forge (see docs/THREATS.md).
//
// If the residuals differ, or the cells have come to no end, the sides compare what is
// left in each range. With it they compare what the plan tells of the range. What
// agrees is proved so; repair.go holds what happens to the rest.

// remainder is what is left of a set without what the plan tells of.
type remainder struct {
	residual dbadapter.Digest
	// told is a hash of the number of records left, and of what the initiator holds,
	// or is told to hold, under each index told.
	told uint64
	// bytes are those of this side's records under each role.
	bytes [roles]int64
}

// remainder is this side's. theirs is what stands for the initiator's records under
// an index, given this side's own.
func (s *party) remainder() (r remainder, err error) {
	key := (*keyhash.Key)(&s.key)
	left := s.here
	for role, list := range s.plan.lists {
		if err := s.own.each(s.link, list, func(at int, records []dbadapter.Hashed) error {
			for n := range records {
				left = left.Sub(dbadapter.Sum{Records: 1, Digest: records[n].Digest})
				r.bytes[role] += recordSize(&records[n].Record)
			}
			r.told += key.Words(keyhash.TagTold, uint64(list[at]), s.theirs(list[at], records))
			return s.link.tick()
		}); err != nil {
			return r, err
		}
	}
	r.residual = left.Digest
	r.told += key.Words(keyhash.TagTold, left.Records)
	return r, nil
}

// holds stands for the initiator's records under an index, at the initiator: their
// checksum, or their mark where that was listed.
func (a *initiator) holds(i dbadapter.Index, records []dbadapter.Hashed) uint64 {
	if len(records) == 0 {
		return 0
	}
	var b dbadapter.Bucket
	for n := range records {
		b.Add(&records[n])
	}
	if a.listed[dbadapter.RangeOf(i)] {
		return a.key.mark(i, b.Digest)
	}
	return uint64(b.Pair(a.opts.Keys.Hasher).Checksum)
}

// result tells the responder's residual.
func (b *responder) result(method wire.Method) error {
	defer b.link.in(StepVerify)()
	r, err := b.remainder()
	if err != nil {
		return err
	}
	b.residual = r.residual
	gives := r.bytes[wire.Lacking] + r.bytes[wire.Newer] + r.bytes[roleOffered]
	if !b.gives {
		gives = 0
	} else if b.gets {
		gives += b.doubtful / 2 // of which half will come back
	}
	b.link.report.ForecastBytes = b.link.report.WireBytesSent + b.link.report.WireBytesReceived + gives
	return b.link.send(&wire.Result{Method: method, Residual: r.residual, Told: r.told, Bytes: uint64(gives), Estimate: uint64(b.link.report.Estimate)})
}

// prove compares the residuals at the initiator, and what it holds with what was
// told of it. Where they differ, it has that repaired.
func (a *initiator) prove(m *wire.Result) error {
	defer a.link.in(StepVerify)()
	r, err := a.remainder()
	if err == nil && (!r.proves(m) || m.Method == wire.MethodRanges) {
		if m, err = a.repair(m); err == nil {
			r, err = a.remainder()
		}
	}
	if err != nil {
		return err
	}
	if !r.proves(m) {
		return fmt.Errorf("%w: %d differences were found, and do not explain the gap between the digests, though %d ranges were listed; nothing was applied",
			ErrNotVerified, a.plan.size(), a.link.report.Repair.Ranges)
	}
	a.residual = r.residual
	if a.gives {
		a.sends = r.bytes[wire.Wanted] + r.bytes[wire.Older] + r.bytes[roleBid]
	}
	a.forecast(m)
	return nil
}

func (r *remainder) proves(m *wire.Result) bool { return r.residual == m.Residual && r.told == m.Told }

// forecast says what the sync will take, now that the differences are known.
func (a *initiator) forecast(m *wire.Result) {
	r := a.link.report
	r.ForecastBytes = r.WireBytesSent + r.WireBytesReceived + a.sends + int64(min(m.Bytes, 1<<62))
}

// rangeKey keys the hashes of ranges and marks.
type rangeKey keyhash.Key

// mark stands for the bucket under an index.
func (k *rangeKey) mark(i dbadapter.Index, d dbadapter.Digest) uint64 {
	return (*keyhash.Key)(k).Words(keyhash.TagMark, append([]uint64{uint64(i)}, d[:]...)...)
}

// hashes are those of all ranges: of what is left in each, and of the indices told of
// it. With each index goes what the initiator holds there, or is told to hold.
func (s *party) hashes() ([]uint64, error) {
	key := (*keyhash.Key)(&s.key)
	told := slices.Sorted(maps.Keys(s.plan.role))
	hashes := make([]uint64, dbadapter.Ranges)
	var input []uint64
	for n := range hashes {
		r := dbadapter.Range(n)
		left := s.replica.Ranges(r, r+1)
		input = append(input[:0], make([]uint64, 5)...)
		for ; len(told) > 0 && dbadapter.RangeOf(told[0]) == r; told = told[1:] {
			records, err := s.own.bucket(told[0])
			if err != nil {
				return nil, err
			}
			for n := range records {
				left = left.Sub(dbadapter.Sum{Records: 1, Digest: records[n].Digest})
			}
			input = append(input, uint64(told[0]), s.theirs(told[0], records))
			if err := s.link.tick(); err != nil {
				return nil, err
			}
		}
		input[0] = left.Records
		copy(input[1:], left.Digest[:])
		hashes[n] = key.Words(keyhash.TagRange, input...)
	}
	return hashes, nil
}

// ofGroups are the hashes of groups of ranges.
func (k *rangeKey) ofGroups(hashes []uint64) (groups [dbadapter.RangeGroups]uint64) {
	for n := range groups {
		groups[n] = (*keyhash.Key)(k).Words(keyhash.TagGroup, hashes[n*dbadapter.RangesInGroup:][:dbadapter.RangesInGroup]...)
	}
	return groups
}

// compare finds the ranges in which the sides do not agree, at the initiator.
func (a *initiator) compare() (differ []dbadapter.Range, err error) {
	if err := a.link.reserve(hashesBytes); err != nil {
		return nil, err
	}
	hashes, err := a.hashes()
	if err != nil {
		return nil, err
	}
	groups := a.key.ofGroups(hashes)
	if err := a.link.send(&wire.Hashes{Groups: math.MaxUint64, Hashes: groups[:]}); err != nil {
		return nil, err
	}
	a.link.report.Rounds++
	theirs, err := due[*wire.Hashes](a.link)
	if err != nil {
		return nil, err
	}
	if len(theirs.Hashes) != bits.OnesCount64(theirs.Groups)*dbadapter.RangesInGroup {
		return nil, violation("%d hashes for the ranges of %d groups", len(theirs.Hashes), bits.OnesCount64(theirs.Groups))
	}
	for n, h := range hashes {
		if theirs.Groups>>(n/dbadapter.RangesInGroup)&1 == 0 {
			continue
		}
		if h != theirs.Hashes[0] {
			differ = append(differ, dbadapter.Range(n))
		}
		theirs.Hashes = theirs.Hashes[1:]
	}
	return differ, nil
}

// tellDiffering finds the groups in which the sides do not agree, at the responder,
// and tells the hashes of their ranges.
func (b *responder) tellDiffering(m *wire.Hashes) (differ uint64, err error) {
	if m.Groups != math.MaxUint64 || len(m.Hashes) != dbadapter.RangeGroups {
		return 0, violation("the hashes of %d groups; all are to be compared", len(m.Hashes))
	}
	if err := b.link.reserve(hashesBytes); err != nil {
		return 0, err
	}
	hashes, err := b.hashes()
	if err != nil {
		return 0, err
	}
	answer := &wire.Hashes{}
	for n, h := range b.key.ofGroups(hashes) {
		if h != m.Hashes[n] {
			answer.Groups |= 1 << n
			answer.Hashes = append(answer.Hashes, hashes[n*dbadapter.RangesInGroup:][:dbadapter.RangesInGroup]...)
		}
	}
	return answer.Groups, b.link.send(answer)
}

// addsUp fails if what has arrived is not what the peer's digest stands for. It can
// tell only if everything has arrived that the peer holds under the indices told.
// stayed counts the indices whose records may have stayed there: they are older, travel
// as offers, or may not travel in this direction.
func (s *party) addsUp(stayed int) error {
	if stayed > 0 || s.there.Digest.Sub(s.residual) == s.take.arrived {
		return nil
	}
	return fmt.Errorf("%w: the records that came do not add up to the digest that was announced", ErrNotVerified)
}

// conclude says whether everything that differed has been exchanged. A sync of
// one direction that had something for the other has not done that.
func (s *party) conclude() {
	r := s.link.report
	r.Verified = r.Rejected == 0 && r.Repair.Left == 0 && s.take.heldThere == 0 && (s.gives && s.gets || !s.heldBack())
}

// heldBack reports whether records may have been left where they were because
// of the direction of the sync.
func (s *party) heldBack() bool {
	other := wire.Lacking
	if s.pulls {
		other = wire.Wanted
	}
	return s.unseen > 0 || s.plan.count(other) > 0 || !s.gives && s.take.owes() > 0
}
