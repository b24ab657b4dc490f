package reconcile

import (
	"math"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// How many cells the responder asks for.

// ask is how many cells to ask for next. 0 means that there will be no end; b.stuck is
// set if the number of differences is not why.
//
// Cells that were not needed cannot be given back. So a burst aims below the probable
// need while that is known roughly, and just above it once it is known well. The
// estimators tell the number of differences d to within 12 % (16 % at 50); d cells tell
// it to within 2.5/√d.
func (b *responder) ask(d *rateless.Decoder) int {
	have := d.Cells()
	all := d.Estimate()
	if b.fresh {
		b.fresh = false
		// No more can differ than both sides hold, nor fewer than their
		// numbers differ by.
		here, there := float64(b.here.Records), float64(b.there.Records)
		all = min(max(all, math.Abs(here-there)), here+there)
		b.link.report.Estimate = int64(math.Round(min(all, 1<<53)))
	}
	all = min(all, MaxCells) // a number that a peer announced: it must not wrap
	aim := cellsFor(firstAim * all)
	if have >= int(wellKnown*all) {
		all = corrected(all, have, d.Found())
		aim = cellsFor(lastAim*all) + int(lastSlack*math.Sqrt(all))
	}
	least := max(minBurst, have/stepDown)
	if twins(d, all) || have >= int(stuckAt*float64(cellsFor(all)))+minBurst {
		least = max(have/2, min(8*have, twinCells-have))
	}
	most := mostCells(b.here.Records, b.there.Records) - have
	b.stuck = have >= int(stuckAt*float64(cellsFor(all)))+stuckSlack || most <= 0 && have < MaxCells
	return max(min(max(aim-have, least), burst, most), 0)
}

// twins reports whether the cells should have been enough, and most pairs did come out.
// Then a few hide behind one another: so far they have every cell in common. At cell i
// a pair shows in about one cell of i, so that only many times the cells will part
// them.
func twins(d *rateless.Decoder, all float64) bool {
	found := float64(d.Found())
	return 1.25*float64(cellsFor(all)) < float64(d.Cells()) && found >= 0.7*all
}

// corrected is the estimate, corrected by how many differences have come out of the
// cells so far. Between 0.8 and 1.05 cells a difference, that share follows from the
// ratio alone. Triples have 0.18 more cells (TestComeOut). So it tells the number of
// differences to within 1.6/√d, and the estimate to within 2.1/√d. Here they are
// weighted by that. More that came out than expected also means that fewer cells than
// usual will do.
func corrected(all float64, have, found int) float64 {
	x := float64(have) / all
	if found == 0 || x < 0.7 || x > 1.1 {
		return all
	}
	more := math.Log(float64(found)/all) - math.Log(comeOut) - comeOutSlope*(x-1)
	return all * math.Exp(-min(max(comeOutWeight*more/(comeOutSlope*x-1), -.15), .15))
}

const (
	// comeOut is the share of the differences that has come out when as many cells have
	// come. comeOutSlope is how its logarithm grows with the cells a difference.
	comeOut       = 0.102
	comeOutSlope  = 6.1
	comeOutWeight = 0.64
)

// How far bursts aim, as a part of the estimate. TestSketchBytes and
// TestManyDifferences bound the cells and rounds that come of it.
const (
	firstAim = 0.88
	// The last aim is lastSlack·√d cells above the mean; what is needed is known to
	// within some 2·√d then. One sync in eight of 1,000 differences takes more than
	// three round trips. Each more √d of slack would cost 0.35 bytes a difference.
	lastAim   = 0.98
	lastSlack = 1.2
	// wellKnown is how many cells a difference must have come for the
	// estimate to be good to a few percent.
	wellKnown = 0.7
	// minBurst is 264 bytes. A hundred differences take two bursts of it behind the
	// first 128 cells at the most, as a rule one.
	minBurst = 24
	// stepDown bounds the rounds where the aim was too low: each further
	// burst adds at least a 16th.
	stepDown = 16
	// twinCells is 11 KiB. Of 40 differences 128 cells leave twins in 17 of 10,000
	// syncs. Two indices of the class that is rarest in later cells may be in none from
	// 64 to 127. With probability 0.2 % they are in none up to here either. Of all
	// other classes each is in one.
	twinCells = 1024
	// Beyond stuckAt times the cells that decode so many differences, and stuckSlack
	// more, which is what twins were given, a comparison by range costs less than more
	// cells. The cells are not those of two sets then, or twins still stay together.
	stuckAt    = 1.5
	stuckSlack = twinCells * 7 / 8
)

// CellsToOpen is how many cells a Hello should carry so that d differences come out of
// it in 99.5 % of syncs (98 % at 1,000). It is QuietCells for up to five, and at most
// MaxFirstCells.
func CellsToOpen(d int) int {
	if d <= quiet {
		return QuietCells
	}
	most := float64(min(d, MaxFirstCells))
	return min(int(1.10*most+5.2*math.Sqrt(most))+22, MaxFirstCells)
}

// quiet is the number of differences up to which QuietCells are enough.
const quiet = 5

// cellsFor is about the mean number of cells that decode d differences. It gives 1.46,
// 1.28, 1.19 and 1.13 cells a difference at d = 64, 256, 1,000 and 10,000. Measured
// were 1.46, 1.27, 1.15 and 1.10. The aims were chosen for it as it is.
func cellsFor(d float64) int {
	return int(math.Ceil(1.10*d + 2.9*math.Sqrt(d)))
}
