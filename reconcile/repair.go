package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The exact listing: what the two sides hold in the ranges that do not agree is
// compared bucket by bucket. It finds what cells cannot show (two contents of one
// checksum), what damaged cells hide, and the sum of a range that was kept wrong.

// Repair tells what the proof by range found and mended. It is zero for a sync
// that proved itself at once.
type Repair struct {
	// Ranges disagreed and were listed. Left disagreed too, and wait for the next
	// sync.
	Ranges, Left int
	// Digests counts the sums of ranges that this side had kept wrong and has
	// replaced.
	Digests int
	// Collisions are indices under which the two sides held other records of one
	// checksum.
	Collisions int
	// Sketch says that the cells were not those of the two sets. One of the two
	// sketches is damaged, or a pair was taken out of them that neither side holds.
	Sketch bool
}

// Needed reports whether the sync did not prove itself at once.
func (r *Repair) Needed() bool { return *r != Repair{} }

// Plus is what two syncs found.
func (r Repair) Plus(s Repair) Repair {
	return Repair{
		Ranges: r.Ranges + s.Ranges, Left: r.Left + s.Left, Digests: r.Digests + s.Digests,
		Collisions: r.Collisions + s.Collisions, Sketch: r.Sketch || s.Sketch,
	}
}

// String says in words what was found; it is empty where nothing had to be repaired.
func (r Repair) String() string {
	if !r.Needed() {
		return ""
	}
	text := fmt.Sprintf("%d ranges compared exactly", r.Ranges)
	for _, n := range []struct {
		count int
		what  string
	}{
		{r.Digests, "sums of ranges kept wrong here, and replaced"},
		{r.Collisions, "records with equal checksums"},
		{r.Left, "ranges left for the next sync"},
	} {
		if n.count > 0 {
			text += fmt.Sprintf(", %d %s", n.count, n.what)
		}
	}
	if r.Sketch {
		text += ", a sketch that is not that of its set"
	}
	return text
}

// repair finds out, at the initiator, where the sides disagree, and lists that. The
// responder's plan for it comes back.
func (a *initiator) repair(m *wire.Result) (*wire.Result, error) {
	defer a.link.in(StepVerify)()
	stuck := m.Method == wire.MethodRanges
	if !stuck && !a.opts.DryRun {
		if err := a.skip(); err != nil {
			return nil, err
		}
	}
	differ, err := a.compare()
	if err != nil {
		return nil, err
	}
	ranges, left := a.share(differ)
	a.listed = inRanges(ranges)
	told := a.plan.drop(inRanges(differ), a.opts.Keys.Hasher)
	marks, err := a.list(ranges, left)
	if err != nil {
		return nil, err
	}
	if err := a.tellListing(ranges, left, marks); err != nil {
		return nil, err
	}
	if err := a.hearListing(); err != nil {
		return nil, err
	}
	rounds := a.link.report.Rounds
	again, err := a.hear()
	a.link.report.Rounds = rounds + 1
	if err != nil {
		return nil, err
	}
	if again.Method != wire.MethodSketch {
		return nil, violation("the method %s after ranges were listed", again.Method)
	}
	a.noteRepair(stuck, told, a.listed)
	return again, nil
}

// skip takes the records that arrived by a plan that is not proved, and keeps none of
// them.
func (a *initiator) skip() error {
	for came := uint64(0); ; {
		m, err := a.link.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Records:
			if came += uint64(len(m.Records)); !a.gets || came > a.there.Records {
				return violation("more records were sent than were announced and asked for")
			}
		case *wire.End:
			return a.ended(m)
		default:
			return unexpected(m)
		}
	}
}

// share is which of the ranges that disagree are listed in this sync, and which
// are left for the next one.
func (a *initiator) share(differ []dbadapter.Range) (ranges, left []dbadapter.Range) {
	most, records := mostRanges(a.here.Records, a.there.Records), uint64(0)
	for _, r := range differ {
		held := a.replica.Ranges(r, r+1).Records
		if held > maxMarks {
			a.overfull++
		}
		if len(ranges) < most && held <= maxMarks-records {
			ranges, records = append(ranges, r), records+held
		} else {
			left = append(left, r)
		}
	}
	return ranges, left
}

// mostRanges is how many ranges one sync lists, of two sets of so many records. They
// hold about listedRecords records; it is at least one range.
func mostRanges(here, there uint64) int {
	records := min(here, 1<<32) + min(there, 1<<32)
	return int(min(max(listedRecords*dbadapter.Ranges/max(records, 1), 1), dbadapter.Ranges))
}

func (a *initiator) tellListing(ranges, left []dbadapter.Range, marks []wire.Mark) error {
	m := &wire.Listing{Ranges: ranges, Left: left, Marks: uint64(len(marks)), Sum: a.here}
	if err := a.link.send(m); err != nil {
		return err
	}
	for part := range slices.Chunk(marks, wire.MaxMarks) {
		if err := a.link.send(&wire.Marks{Marks: part}); err != nil {
			return err
		}
	}
	a.link.report.Rounds++
	return nil
}

// hearListing reads what the responder holds, now that it has counted anew.
func (a *initiator) hearListing() error {
	theirs, err := due[*wire.Listing](a.link)
	if err != nil {
		return err
	}
	if len(theirs.Ranges)+len(theirs.Left) > 0 || theirs.Marks > 0 {
		return violation("a responder listed ranges")
	}
	a.there = theirs.Sum
	return nil
}

// repair answers the initiator's hashes: it says where the sides disagree, takes the
// initiator's listing of that, and makes a plan for it.
func (b *responder) repair(m *wire.Hashes) error {
	defer b.link.in(StepVerify)()
	b.takeBack()
	groups, err := b.tellDiffering(m)
	if err != nil {
		return err
	}
	listing, marks, err := b.takeListing(groups)
	if err != nil {
		return err
	}
	listed := inRanges(listing.Ranges)
	told := b.plan.drop(inRanges(slices.Concat(listing.Ranges, listing.Left)), b.opts.Keys.Hasher)
	own, err := b.list(listing.Ranges, listing.Left)
	if err != nil {
		return err
	}
	b.there = listing.Sum
	if err := b.link.send(&wire.Listing{Sum: b.here}); err != nil {
		return err
	}
	b.found = slices.DeleteFunc(b.found, func(d coded.Difference) bool { _, dropped := told[d.Index]; return dropped })
	agreed := *b.plan
	*b.plan = *newPlan()
	if err := b.draw(exactly(marks, own)); err != nil {
		return err
	}
	b.take.told = announce(b.opts.Keys.Hasher, b.found)
	b.take.told.exact(&b.key, marks, b.plan)
	maps.DeleteFunc(b.tells, func(i dbadapter.Index, _ uint64) bool { _, dropped := told[i]; return dropped })
	maps.Copy(b.tells, b.take.told.marks)
	if err := b.tell(); err != nil {
		return err
	}
	b.plan.absorb(&agreed)
	b.counted()
	b.noteRepair(b.stuck, told, listed)
	return b.result(wire.MethodSketch)
}

// takeBack forgets the first leg: the initiator keeps nothing of it.
func (b *responder) takeBack() {
	r := b.link.report
	r.Sent, r.Rejected, r.DeclinedThere, r.DeclinedCollectable, r.DeclinedForFloor = 0, 0, Reasons{}, 0, nil
	b.give = b.sends()
	b.doubtful = 0
}

// takeListing takes the initiator's listing.
func (b *responder) takeListing(groups uint64) (*wire.Listing, []wire.Mark, error) {
	listing, err := due[*wire.Listing](b.link)
	if err != nil {
		return nil, nil, err
	}
	most := mostRanges(b.here.Records, b.there.Records)
	if len(listing.Ranges) > most || listing.Marks > maxMarks {
		return nil, nil, violation("a listing of %d records in %d ranges; at most %d in %d are allowed", listing.Marks, len(listing.Ranges), maxMarks, most)
	}
	asked := inRanges(listing.Ranges)
	first, end := b.hello.Span.All()
	for _, r := range slices.Concat(listing.Ranges, listing.Left) {
		if r < first || r >= end {
			return nil, nil, violation("range %d was listed, or left out, in a sync of the ranges %d to %d", r, first, end-1)
		}
		if groups>>(r/dbadapter.RangesInGroup)&1 == 0 {
			return nil, nil, violation("range %d was listed, or left out, of a group that agrees", r)
		}
	}
	for _, r := range listing.Left {
		if asked[r] {
			return nil, nil, violation("range %d was listed and left out", r)
		}
	}
	var marks []wire.Mark
	for uint64(len(marks)) < listing.Marks {
		part, err := due[*wire.Marks](b.link)
		if err != nil {
			return nil, nil, err
		}
		if err := b.link.reserve(markBytes * int64(len(part.Marks))); err != nil {
			return nil, nil, err
		}
		for _, mark := range part.Marks {
			if !asked[dbadapter.RangeOf(mark.Index)] || len(marks) > 0 && mark.Index <= marks[len(marks)-1].Index {
				return nil, nil, violation("index %d is out of order in a listing, or outside of it", mark.Index)
			}
			marks = append(marks, mark)
		}
	}
	if uint64(len(marks)) > listing.Marks {
		return nil, nil, violation("%d records in a listing of %d", len(marks), listing.Marks)
	}
	return listing, marks, nil
}

// list reads the records in ranges and replaces the sums that were kept wrong. It takes
// the ranges that are left out off what this side holds. The marks are those of the
// records.
func (s *party) list(ranges, left []dbadapter.Range) ([]wire.Mark, error) {
	repair := &s.link.report.Repair
	if all := s.replica.Ranges(0, dbadapter.Ranges); all != s.here {
		repair.Digests++ // their total
		s.replica.Repair(0, s.replica.Ranges(0, 1))
		s.here = all
	}
	sums := map[dbadapter.Range]dbadapter.Sum{}
	var marks []wire.Mark
	for b, err := range s.replica.List(ranges) {
		if err != nil {
			return nil, fmt.Errorf("listing %d ranges: %w", len(ranges), err)
		}
		if len(marks)%markStep == 0 {
			if err := s.link.reserve(markBytes * markStep); err != nil {
				return nil, err
			}
		}
		r := dbadapter.RangeOf(b.Index)
		sums[r] = sums[r].Add(b.Sum)
		marks = append(marks, wire.Mark{Index: b.Index, Hash: s.key.mark(b.Index, b.Sum.Digest)})
		if err := s.link.tick(); err != nil {
			return nil, err
		}
	}
	for _, r := range ranges {
		if kept := s.replica.Ranges(r, r+1); kept != sums[r] {
			repair.Digests++
			s.replica.Repair(r, sums[r])
			s.here = s.here.Sub(kept).Add(sums[r])
		}
	}
	for _, r := range left {
		s.here = s.here.Sub(s.replica.Ranges(r, r+1))
	}
	repair.Ranges, repair.Left = len(ranges), len(left)
	s.link.report.Listed = slices.Clone(ranges[:min(len(ranges), NamedRanges)])
	return marks, nil
}

// exactly compares two listings. Marks tell no age, so that a mismatch counts as
// one of records of an age.
func exactly(theirs, ours []wire.Mark) (found []coded.Difference) {
	for len(theirs) > 0 || len(ours) > 0 {
		switch {
		case len(ours) == 0 || len(theirs) > 0 && theirs[0].Index < ours[0].Index:
			found = append(found, coded.Difference{Kind: rateless.MissingHere, Index: theirs[0].Index})
			theirs = theirs[1:]
		case len(theirs) == 0 || ours[0].Index < theirs[0].Index:
			found = append(found, coded.Difference{Kind: rateless.MissingThere, Index: ours[0].Index})
			ours = ours[1:]
		default:
			if theirs[0].Hash != ours[0].Hash {
				found = append(found, coded.Difference{Kind: rateless.Mismatched, Index: ours[0].Index})
			}
			theirs, ours = theirs[1:], ours[1:]
		}
	}
	return found
}

// noteRepair holds what the cells told of the listed ranges against what is there.
func (s *party) noteRepair(stuck bool, told map[dbadapter.Index]wire.Role, listed map[dbadapter.Range]bool) {
	repair := &s.link.report.Repair
	repair.Sketch = stuck
	for i, role := range s.plan.role {
		if _, shown := told[i]; shown || !listed[dbadapter.RangeOf(i)] {
			continue
		}
		if role == wire.Lacking || role == wire.Wanted {
			repair.Sketch = true // a record of one side must show in the cells
		} else if !stuck {
			repair.Collisions++
		}
	}
	for i := range told {
		if _, real := s.plan.role[i]; !real && listed[dbadapter.RangeOf(i)] {
			repair.Sketch = true
		}
	}
}

func inRanges(list []dbadapter.Range) map[dbadapter.Range]bool {
	in := map[dbadapter.Range]bool{}
	for _, r := range list {
		in[r] = true
	}
	return in
}
