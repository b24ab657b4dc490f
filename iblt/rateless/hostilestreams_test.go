package rateless

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

const (
	// hostileWork is the constant of the promise: tests, look-ups, cells walked and
	// moves are at most 5 · (cells + cells of the pairs that were accepted, refused
	// or put back).
	hostileWork = 5
	// hostileBytes is what a cell may take in memory while it is decoded.
	hostileBytes = 400
	// hostileHeap is what the whole run may take.
	hostileHeap = 64 << 20
)

// hostile checks what is promised of any stream of cells, beyond bounded.
func hostile(d *Decoder) error {
	if err := bounded(d); err != nil {
		return err
	}
	w, cells := d.work, len(d.cells)
	if work := w.Tests + w.Lookups + w.Walked + w.Moves; work > hostileWork*(cells+w.Walked) {
		return fmt.Errorf("%d cells: %+v", cells, w)
	}
	r := &d.round
	bytes := cap(d.cells)*int(unsafe.Sizeof(slot{})) + cap(d.found)*int(unsafe.Sizeof(belief{})) +
		(cap(d.queue)+cap(r.queue)+cap(d.waiting)+cap(d.agenda.heads)+cap(d.homes))*4 + cap(r.picks)*int(unsafe.Sizeof(pick{})) +
		(cap(r.inverses)+cap(r.scratch)+cap(r.indices)+cap(r.sums)+len(d.known.slots)+5*len(d.bans))*8
	if bytes > hostileBytes*cells+8<<10 {
		return fmt.Errorf("%d cells: %d bytes", cells, bytes)
	}
	return nil
}

// TestHostileStreams reads and decodes forged streams; -trials 50 makes a
// million. Some are damaged so that they are no cells.
func TestHostileStreams(t *testing.T) {
	const seed = 33
	n := 20_000 * *trials
	f := newForger(rand.New(rand.NewPCG(seed, 0)), Key{33}, 2000)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	refused, forged, done, pairs, most := 0, 0, 0, 0, 0.0
	var stream, forgery int
	defer func() {
		if t.Failed() {
			t.Logf("stream %d of seed %d, %s", stream, seed, forgeries[forgery].name)
		}
	}()
	for stream = range n {
		var sent []Cell
		sent, forgery = f.stream()
		b := AppendCells(nil, sent)
		wrong := f.damage(b)
		if f.IntN(16) == 0 {
			b, wrong = b[:len(b)-1-f.IntN(CellSize-1)], true
		}
		cells, err := DecodeCells(b)
		if wrong {
			if !errors.Is(err, ErrCell) || cells != nil {
				t.Fatalf("damaged cells are read: %v", err)
			}
			refused++
			continue
		}
		if err != nil || string(AppendCells(nil, cells)) != string(b) {
			t.Fatalf("cells are not read as they were written: %v", err)
		}
		d := checkHostile(t, Key{33}, cells, 1+f.IntN(len(cells)), f.ours, f.lookup)
		if d.err != nil {
			forged++
		}
		if d.Done() {
			done++
		}
		pairs += len(d.found)
		w := d.work
		most = max(most, float64(w.Tests+w.Lookups+w.Walked+w.Moves)/float64(len(d.cells)+w.Walked))
		if stream%5000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > before.HeapAlloc+hostileHeap {
				t.Fatalf("%d bytes are in use", now.HeapAlloc-before.HeapAlloc)
			}
			runtime.KeepAlive(d)
		}
	}
	t.Logf("%d streams: %d refused as cells, %d decoded, of which %d were found forged and %d explained in full; %d pairs; at most %.2f work a cell and a cell of a pair",
		n, refused, n-refused, forged, done, pairs, most)
	if refused < n/20 || n-refused < n/2 || pairs < n || done < n/100 {
		t.Error("one side of the checks was not tried")
	}
}

// damage makes one sum too large in one of 16 streams, and reports whether.
func (f *forger) damage(b []byte) bool {
	if f.IntN(16) > 0 {
		return false
	}
	wrong := Cell{S1: f.Uint64N(p), S2: f.Uint64N(p), Count: uint8(f.IntN(16))}
	if large := p + f.Uint64N(sumMask-p+1); f.IntN(2) == 0 {
		wrong.S1 = large
	} else {
		wrong.S2 = large
	}
	copy(b[f.IntN(len(b)/CellSize)*CellSize:], AppendCells(nil, []Cell{wrong}))
	return true
}
