package watermark

import "github.com/syncd-io/syncd/dbadapter"

// One rule binds the writes of a node that loses the right to write, by whatever it
// learns that. At once it sets aside its own records that no sync has proved another
// member to hold. It also sets aside those that its list does not let it have
// written. It does so even where the same news give it the right back. What others
// have written since is not to lose against what a person may not know to be there
// any more.
//
// What is proved is known by one reading of the clock, State.Proved. So the rule
// is a function of that, of State.RightLost and of the list. A sweep that was cut off
// goes on after a restart.

// SetRight takes this node's right to write (roster.List.Right) as it is by now, at a
// reading of the clock.
func (w *Watermark) SetRight(right, reading dbadapter.Timestamp) (changed bool) {
	if w.state.Right == right {
		return false
	}
	if w.state.Right != 0 && (right == 0 || right > w.state.Right) {
		w.state.RightLost = reading
	}
	w.state.Right = right
	return true
}

// Renounced notes that what follows from the loss of the right at a reading is done. It
// is not if this node has learned of another loss since.
func (w *Watermark) Renounced(lost dbadapter.Timestamp) (changed bool) {
	if w.state.RightLost != lost {
		return false
	}
	w.state.RightLost = 0
	return true
}

// prove notes that another member holds what this node has written up to a reading.
// It does not if this node has dated records since a sync began with that reading.
func (w *Watermark) prove(tau dbadapter.Timestamp, began Basis) (changed bool) {
	if w.basis.backdated != began.backdated || tau <= w.state.Proved {
		return false
	}
	w.state.Proved = tau
	return true
}

// unprove notes that a record with this clock, which may be earlier than Proved, is about to be
// written. What this node wrote later than it counts as not proved, too, until the next sync.
func (w *Watermark) unprove(clock dbadapter.Timestamp) (changed bool) {
	w.basis.backdated++
	if clock > w.state.Proved {
		return false
	}
	w.state.Proved = clock - 1
	return true
}
