package rateless

import "math"

// mostExpected is how many of the differences that are left may be expected in a cell
// that is tested. A count modulo 16 passes by chance in denser cells. Without a gate
// two to three times as many wrong pairs are accepted at 40 differences. At 4 no
// further cell is needed for it. At 2, 1,000 differences take 1.29 cells each and not
// 1.16. At 1, a quarter of the decodes stall.
const mostExpected = 4

// left is about how many differences are left. It follows from how many cells of
// the later half are zero, as each difference misses one with nearly the same
// probability.
func (d *Decoder) left() float64 {
	if d.late == 0 {
		return 0
	}
	n := len(d.cells)
	half := float64(n - n/2)
	free := max(half-float64(d.late), .5) / half
	return -math.Log(free) / d.words.tables.visiting(n*3/4)
}

// firstSparse is the first of the cells that may be tested. In it, and in those
// beyond, at most d.gate of the differences that are left are expected.
func (d *Decoder) firstSparse() int32 {
	left := d.left()
	if left <= d.gate {
		return 0
	}
	if far := left * density / d.gate; far >= join {
		return int32(min(far, MaxCells))
	}
	j := 1
	for j < join && float64(openings[j])*left > 256*d.gate {
		j++
	}
	return int32(j)
}

// density is j·v(j) beyond join, to within some percent.
const density = 2.587

// awake queues the waiting cells that may be tested by now, where no other is
// queued.
func (d *Decoder) awake() {
	if len(d.queue) > 0 || len(d.waiting) == 0 {
		return
	}
	for first := d.firstSparse(); len(d.waiting) > 0 && d.waiting[0] >= first; {
		at := d.waiting.pop()
		d.cells[at].first &^= waits
		d.enqueue(at)
	}
}

// waiting are cells, the last of the sequence on top: a heap.
type waiting []int32

func (w *waiting) push(at int32) {
	h := append(*w, at)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] < at {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = at
	*w = h
}

func (w *waiting) pop() int32 {
	h := *w
	top, at := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*w = h
	for i := 0; len(h) > 0; {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1] > h[child] {
			child++
		}
		if child >= len(h) || h[child] <= at {
			h[i] = at
			break
		}
		h[i] = h[child]
		i = child
	}
	return top
}
