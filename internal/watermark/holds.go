package watermark

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// spare is 10 seconds of a clock.
var spare = dbadapter.TimestampAt(time.Unix(10, 0))

// Hold keeps the promise below a clock, for records with a date that are about to be
// committed. The least clock of those that are this node's own is own; 0: none is.
// Members hold them once they know a reading of at or later. The hold reaches
// further, so that not each of the records that follow costs a durable state.
func (w *Watermark) Hold(clock, own, at dbadapter.Timestamp) (changed bool) {
	changed = own != 0 && w.unprove(own)
	if slices.ContainsFunc(w.state.Holds, func(h Hold) bool { return h.Clock <= clock && at <= h.At }) {
		return changed
	}
	w.state.hold(clock, at+spare)
	return true
}

// covered reports whether all members hold the dated imports of a hold, by what
// they say.
func (w *Watermark) covered(h Hold) bool {
	return !slices.ContainsFunc(w.active, func(id roster.ID) bool { return id != w.self && !w.coveredBy(id, h) })
}

// coveredBy is covered for one member.
func (w *Watermark) coveredBy(id roster.ID, h Hold) bool {
	s, at := w.under(id), slices.Index(w.active, w.self)
	return s != nil && at >= 0 && s.Vector[at] >= h.At
}

// release drops the holds that all members have covered.
func (w *Watermark) release() { w.state.Holds = slices.DeleteFunc(w.state.Holds, w.covered) }

// Import is an import of records with a date that runs. The zero value has taken none.
type Import struct{ earliest dbadapter.Timestamp }

// Import takes the dates of an import's next records. Those up to promised come too
// late: this node has promised to hold all up to there, or has collected. Until the
// import ends the node promises nothing that reaches earliest, of the others; it is
// Never where there is none.
func (w *Watermark) Import(im *Import, dates []dbadapter.Timestamp) (promised, earliest dbadapter.Timestamp) {
	if !w.imports[im] {
		if w.imports == nil {
			w.imports = map[*Import]bool{}
		}
		w.imports[im], im.earliest = true, Never
	}
	promised = w.UpTo()
	for _, at := range dates {
		if at > promised {
			im.earliest = min(im.earliest, at)
		}
	}
	return promised, im.earliest
}

// EndImport ends an import: the promise may rise again.
func (w *Watermark) EndImport(im *Import) { delete(w.imports, im) }

// Never is a date that no record has.
const Never = ^dbadapter.Timestamp(0)

// Restamp keeps the promise below the versions that are about to be made, which are later than
// from. Members may take them for older than a reading of this clock that they know: it
// has said up to.
func (w *Watermark) Restamp(from, upTo dbadapter.Timestamp) {
	w.unprove(from + 1)
	w.state.hold(from, upTo)
}

// Restamped forgets what this node has pledged from the future.
func (w *Watermark) Restamped() {
	delete(w.said, w.self)
	w.anew()
}
