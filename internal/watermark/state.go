package watermark

import (
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// State is the part of a watermark that must be durable.
type State struct {
	// Floor: no record up to it that the node does not hold is let in. It is at
	// least the time of each tombstone collected, and never falls.
	Floor dbadapter.Timestamp `cbor:"1,keyasint"`
	// Pledged is the greatest promise ever made, or taken over from the inviter,
	// that members may rely on. No dated import is up to it.
	Pledged dbadapter.Timestamp `cbor:"2,keyasint"`
	// Serial is that of the last pledge made.
	Serial uint64 `cbor:"3,keyasint"`
	// Epoch is how often the members have gone on without this node.
	Epoch uint64 `cbor:"4,keyasint"`
	// Recovering: the node may lack what it, or the members, once held. It
	// promises nothing, keeps nothing out and collects nothing.
	//
	// Of a shard, what does not recover is whole (package quorum), and it is that by its row.
	Recovering bool `cbor:"5,keyasint"`
	// Holds are the dated and restamped records that members may not hold yet.
	Holds []Hold `cbor:"6,keyasint"`
	// List is the list of members under which Holds count.
	List [16]byte `cbor:"7,keyasint"`
	// Proved: this node's own records up to it were in a set that a sync has proved
	// equal to another member's.
	Proved dbadapter.Timestamp `cbor:"8,keyasint,omitempty"`
	// Right is this node's right to write (roster.List.Right), as it was when it was followed last.
	Right dbadapter.Timestamp `cbor:"9,keyasint,omitempty"`
	// RightLost is the reading of the clock when this node learned that it had lost its
	// right. Its own records up to it that are not proved are to be set aside. 0:
	// that is done.
	RightLost dbadapter.Timestamp `cbor:"10,keyasint,omitempty"`
	// Lost: it recovers since records were lost, or replaced by those of a copy. Of a shard.
	Lost bool `cbor:"11,keyasint,omitempty"`
}

// MaxHolds is how many groups of dated records are waited for one by one.
const MaxHolds = 16

// Hold is records that keep the promise down: dated imports, or what a restamp
// makes anew. A member's pledge may give At, or a later reading of this node's
// clock. That member has met a snapshot that holds the records from Clock on.
type Hold struct {
	Clock dbadapter.Timestamp `cbor:"1,keyasint"`
	At    dbadapter.Timestamp `cbor:"2,keyasint"`
}

// Clone copies s so deeply that changing the copy leaves s alone.
func (s State) Clone() State {
	s.Holds = slices.Clone(s.Holds)
	return s
}

// Validate checks what was read from a disk.
func (s *State) Validate() error {
	if len(s.Holds) > MaxHolds {
		return errors.New("too many dated imports that members may not hold")
	}
	return nil
}

// hold adds records that are written until the clock gives a reading. Where there
// are many, the last two are taken together, which holds more back.
func (s *State) hold(clock, at dbadapter.Timestamp) {
	s.Holds = append(s.Holds, Hold{clock, at})
	for n := len(s.Holds); n > MaxHolds; n = len(s.Holds) {
		last := s.Holds[n-1]
		s.Holds = s.Holds[:n-1]
		s.Holds[n-2] = Hold{min(s.Holds[n-2].Clock, last.Clock), max(s.Holds[n-2].At, last.At)}
	}
}

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
