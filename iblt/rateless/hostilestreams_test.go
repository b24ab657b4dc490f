package rateless

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

const (
	// hostileWork is the constant of the promise: tests, look-ups, updates and
	// moves are at most 5 · (cells + cells of the accepted pairs).
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
	if work := w.Tests + w.Lookups + w.Updates + w.Moves; work > hostileWork*(cells+w.Updates) {
		return fmt.Errorf("%d cells: %+v", cells, w)
	}
	r := &d.round
	bytes := cap(d.cells)*int(unsafe.Sizeof(slot{})) + cap(d.found)*int(unsafe.Sizeof(Difference{})) +
		cap(d.mappings)*int(unsafe.Sizeof(pending{})) + (cap(d.queue)+cap(r.queue)+cap(d.agenda.heads))*4 +
		cap(r.picks)*int(unsafe.Sizeof(pick{})) + (cap(r.inverses)+cap(r.scratch)+cap(r.indices)+cap(r.sums)+len(d.known.slots))*8
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
		most = max(most, float64(w.Tests+w.Lookups+w.Updates+w.Moves)/float64(len(d.cells)+w.Updates))
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
	if refused < n/20 || n-refused < n/2 || pairs < n || done < n/50 {
		t.Error("one side of the checks was not tried")
	}
}

// damage makes one sum too large in one of 16 streams, and reports whether.
func (f *forger) damage(b []byte) bool {
	if f.IntN(16) > 0 {
		return false
	}
	at := f.IntN(len(b)/8) * 8
	word := binary.LittleEndian.Uint64(b[at:])
	binary.LittleEndian.PutUint64(b[at:], word&^sumMask|(p+f.Uint64N(sumMask-p+1)))
	return true
}

// TestHostileStreamsPassChecks gives the forger what 2^26 trials a cell would: each
// check agrees. Then there are more pairs to be had than cells.
func TestHostileStreamsPassChecks(t *testing.T) {
	const seed = 34
	f := newForger(rand.New(rand.NewPCG(seed, 0)), Key{34}, 2000)
	n, forged := 3000**trials, 0
	for i := range n {
		cells, forgery := f.stream()
		peel := shortPeel{Decoder: NewSourceDecoder(Key{34}, f.ours, f.lookup), test: func(*pick, Index) {}}
		peel.held = func(_ *pick, k Index) Checksum { return f.local[k] }
		burst := 1 + f.IntN(len(cells))
		for len(cells) > 0 && peel.err == nil {
			next := min(burst, len(cells))
			peel.err = peel.take(cells[:next])
			cells = cells[next:]
			for len(peel.queue) > 0 && peel.err == nil {
				peel.err = peel.oneRound()
			}
		}
		if peel.err != nil {
			if !errors.Is(peel.err, ErrForged) {
				t.Fatal(peel.err)
			}
			forged++
		}
		if err := hostile(peel.Decoder); err != nil {
			t.Fatalf("stream %d of seed %d, %s: %v", i, seed, forgeries[forgery].name, err)
		}
	}
	t.Logf("%d streams, %d found forged", n, forged)
	if forged == 0 {
		t.Error("no stream had more pairs than cells: the forger is too weak")
	}
}
