package model

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Damage of what a node keeps of its records for syncs, as memory that flips a bit, or a
// fault of the program, would leave it. The records are right. It goes where the state
// itself goes, into summaries on the disk and copies of it.

// Deviation is how far what is kept of a range is from what its records give.
type Deviation struct {
	Range dbadapter.Range
	By    dbadapter.Sum
}

// damagedCells is how many cells are damaged and compared: more than small sets read.
const damagedCells = 1 << 10

// summaryHead is where the cells begin in a summary of package replica.
const summaryHead = 38

// spoil replaces the live sketch by what change makes of its summary. Sessions under
// way begin anew, as after a start.
func (n *Node) spoil(change func(live *replica.Live, summary []byte)) {
	p := n.process
	if p == nil || p.ns == nil {
		return
	}
	p.flush()
	live := p.set.Live
	seq, summary := live.Summary()
	none := func(func(dbadapter.Change, error) bool) {}
	change(live, summary)
	if err := live.Restore(seq, summary, none); err != nil {
		return // no sum of a cell is that large
	}
	n.strikes, n.struck = n.strikes+1, n.world.Now()
}

// FlipCell flips a bit of the first cells of the live sketch.
func (n *Node) FlipCell(bit uint64) {
	n.spoil(func(_ *replica.Live, summary []byte) {
		bit %= damagedCells * rateless.CellSize * 8
		summary[summaryHead+bit/8] ^= 1 << (bit % 8)
	})
}

// tell has the live sketch follow a change that the store has not made.
func (n *Node) tell(c dbadapter.Change) {
	n.spoil(func(*replica.Live, []byte) {}) // no snapshot looks back behind it
	p := n.process
	_, _, c.Seq = p.set.Live.State()
	p.set.Live.Observe([]dbadapter.Change{c})
}

// FlipSum flips a bit of what is kept of a range: 64 of the number of records, then 256
// of the sum of their digests. The ranges that hold records come first.
func (n *Node) FlipSum(bit uint64) {
	p := n.process
	if p == nil || p.ns == nil {
		return
	}
	const bits = 64 * 5
	sums := p.keptSums()
	order := make([]dbadapter.Range, 0, dbadapter.Ranges)
	for _, empty := range []bool{false, true} {
		for r, s := range sums {
			if (s == dbadapter.Sum{}) == empty {
				order = append(order, dbadapter.Range(r))
			}
		}
	}
	r := order[bit/bits%dbadapter.Ranges]
	kept := sums[r]
	flipped := kept
	if at := bit % bits; at < 64 {
		flipped.Records ^= 1 << at
	} else {
		flipped.Digest[at/64-1] ^= 1 << (at % 64)
	}
	p.node.flipped[r] = true
	from, _ := r.Bounds()
	missing := flipped.Sub(kept)
	n.tell(dbadapter.Change{Index: from, Delta: missing.Digest, Records: int(missing.Records)})
}

// Phantom puts a pair that no node holds into the live sketch; an odd number takes it
// out.
func (n *Node) Phantom(number uint64) {
	if n.process == nil || n.process.ns == nil {
		return
	}
	p := n.drawPair(number, 0)
	c := dbadapter.Change{Index: dbadapter.Index(p.Index), New: dbadapter.Checksum(p.Checksum)}
	if number%2 == 1 {
		c.Old, c.New = c.New, c.Old
	}
	n.tell(c)
}

// drawPair is a pair that no node holds.
func (n *Node) drawPair(a, b uint64) rateless.Pair {
	draw := func(c uint64) uint64 {
		return 1 + n.world.Draw(sim.ForPhantom, a<<8|uint64(n.number), b, c)%(1<<41)
	}
	index := rateless.Index(draw(0))
	return rateless.Pair{Index: index, Checksum: rateless.Seal(index, draw(1)>>8)}
}

// keptSums is what the process keeps of each range.
func (p *process) keptSums() []dbadapter.Sum {
	snap, err := p.set.Live.Snapshot(context.Background(), p.store, nil)
	if err != nil {
		panic(err) // it is in memory, and open
	}
	defer snap.Close()
	sums := make([]dbadapter.Sum, dbadapter.Ranges)
	for r := range sums {
		sums[r] = snap.Ranges(dbadapter.Range(r), dbadapter.Range(r)+1)
	}
	return sums
}

// right is the state as the records of a moment give it.
type right struct {
	dump []dbadapter.Record // that they are of
	sums []dbadapter.Sum
	check.State
}

// wrong compares what a process keeps with its records, if it was ever damaged.
func (p *process) wrong() (w check.Wrong, sums []Deviation) {
	if p.node.strikes == 0 || p.ns == nil || p.cut() {
		return w, nil
	}
	live, err := p.set.Live.Snapshot(context.Background(), p.store, nil)
	if err != nil {
		panic(err) // it is in memory, and open
	}
	defer live.Close()
	cells, err := live.Cells(0, damagedCells)
	if err != nil {
		panic(err)
	}
	want := p.compute()
	whole := live.Ranges(0, dbadapter.Ranges) == dbadapter.Sum{Records: want.Records, Digest: want.Digest}
	for r := range want.sums {
		if whole && !p.node.flipped[dbadapter.Range(r)] {
			continue // what is wrong here would have to be made up for by another
		}
		kept := live.Ranges(dbadapter.Range(r), dbadapter.Range(r)+1)
		if kept == want.sums[r] {
			continue
		}
		w.Sums++
		if kept.Records != want.sums[r].Records {
			w.Numbers++
		}
		sums = append(sums, Deviation{dbadapter.Range(r), kept.Sub(want.sums[r])})
	}
	for i := range want.Cells {
		if cells[i] != want.Cells[i] {
			w.Cells++
		}
	}
	return w, sums
}

// compute is the state that the records give, made anew when they have changed.
func (p *process) compute() *right {
	dump := p.records()
	if p.right.sums != nil && len(dump) == len(p.right.dump) && (len(dump) == 0 || &dump[0] == &p.right.dump[0]) {
		return &p.right
	}
	buckets := Buckets(p.set.Keys.Hasher, dump)
	sums := make([]dbadapter.Sum, dbadapter.Ranges)
	for i, b := range buckets {
		at := dbadapter.RangeOf(i)
		sums[at] = sums[at].Add(dbadapter.Sum{Records: uint64(b.Records), Digest: b.Digest})
	}
	p.right = right{dump, sums, Recompute(p.set.Keys, buckets, damagedCells)}
	return &p.right
}

// Buckets are the records of a dump, which is by key, under each index.
func Buckets(h dbadapter.Hasher, dump []dbadapter.Record) map[dbadapter.Index]*dbadapter.Bucket {
	buckets := map[dbadapter.Index]*dbadapter.Bucket{}
	for i := range dump {
		record := dbadapter.Hashed{Record: dump[i], Index: h.Index(dump[i].Key), Digest: h.Digest(&dump[i])}
		b := buckets[record.Index]
		if b == nil {
			b = &dbadapter.Bucket{}
			buckets[record.Index] = b
		}
		b.Add(&record)
	}
	return buckets
}

// Recompute is the state that records give under the keys of their set, with so many cells.
func Recompute(keys reconcile.Keys, buckets map[dbadapter.Index]*dbadapter.Bucket, cells int) (s check.State) {
	sketch := rateless.NewSketch(keys.Cells, cells)
	for i, b := range buckets {
		s.Digest, s.Records = s.Digest.Add(b.Digest), s.Records+uint64(b.Records)
		sketch.Add(coded.Pair(i, b.Pair(keys.Hasher).Checksum))
	}
	s.Cells = sketch.Prefix(cells)
	return s
}

// audit looks a little later, after a sync that calls for it, whether what the process
// keeps is to be computed anew.
func (p *process) audit() {
	if p.ns == nil || !p.ns.AuditDue() {
		return
	}
	p.after(auditLook, func() {
		if p.ns.AuditDue() {
			p.auditNow()
			p.refused(p.core.KeepSummaries(context.Background(), p.node.world.Now()))
		}
	})
}

func (p *process) auditNow() (d replica.Drift) {
	d, _, err := p.ns.Audit(context.Background(), nil)
	p.refused(err)
	p.node.world.Note("audit", p.node.number, d.Ranges, []byte(d.String()))
	return d
}

// Audit computes anew what the node keeps, and keeps that on the disk: it says what was
// wrong.
func (n *Node) Audit() (d replica.Drift) {
	n.joinedDo(func(p *process) error {
		d = p.auditNow()
		return p.core.KeepSummaries(context.Background(), n.world.Now())
	})
	return d
}

// Damaged reports whether what the node keeps of its records was ever damaged.
func (n *Node) Damaged() bool { return n.strikes > 0 }

// Wrong is what of it is wrong now, and the ranges among that.
func (n *Node) Wrong() (w check.Wrong, sums []Deviation) {
	if n.process != nil {
		w, sums = n.process.wrong()
	}
	return w, sums
}

// Common counts the deviations that two nodes share: what both keep wrong alike, neither
// can see in the other.
func Common(a, b []Deviation) (n int) {
	for _, d := range a {
		if slices.Contains(b, d) {
			n++
		}
	}
	return n
}

// FalsePeel spoils the cells of the next sync that the node begins with another.
func (n *Node) FalsePeel(remote int) { n.stray[remote] = true }

// stray is a pair that neither side holds, and that the initiator's cells hold in a
// session, too. It is in all of them, in those of its first message only, or in one cell.
type stray struct {
	cells []rateless.Cell // that are added to its own
	later bool
	sent  int
}

func (n *Node) drawStray(a, b uint64) *stray {
	sketch := rateless.NewSketch(n.cluster.keys.Cells, 1<<14)
	sketch.Add(n.drawPair(a, b+1))
	return &stray{cells: sketch.Prefix(sketch.Len()), later: n.world.Draw(sim.ForPhantom, a, b, uint64(n.number)<<8|255)%2 == 0}
}

// into adds the pair to the cells of a frame.
func (s *stray) into(m wire.Message, frame []byte) []byte {
	switch m := m.(type) {
	case *wire.Hello:
		with := *m
		with.Cells = s.add(m.Cells)
		return wire.Append(nil, &with)
	case *wire.Cells:
		if s.later {
			with := *m
			with.Cells = s.add(m.Cells)
			return wire.Append(nil, &with)
		}
	}
	return frame
}

func (s *stray) add(cells []rateless.Cell) []rateless.Cell {
	cells = slices.Clone(cells)
	for i := range cells {
		if s.sent < len(s.cells) {
			a := &s.cells[s.sent]
			cells[i] = rateless.Cell{
				S1: keyhash.Add(cells[i].S1, a.S1), S2: keyhash.Add(cells[i].S2, a.S2),
				Count: (cells[i].Count + a.Count) % (1 << 4),
			}
		}
		s.sent++
	}
	return cells
}
