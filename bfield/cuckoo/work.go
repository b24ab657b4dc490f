package cuckoo

// Work is what the calls that changed a table did in all since it was made or
// read.
type Work struct {
	Searched  uint64 // buckets that were looked at for a free slot
	Moved     uint64 // entries that went from one slot to another
	MostMoved int    // of these, by one call
	call      int    // so far, by the present call
}

func (w *Work) begin() { w.call = 0 }

func (w *Work) move() {
	w.Moved++
	w.call++
	w.MostMoved = max(w.MostMoved, w.call)
}
