package reconcile

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/multiformats/go-varint"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// damager makes hostile vectors of honest frames. It knows the grammar, the
// namespace's secret and both sets, but not the key of the honest writer.
type damager struct {
	rng  *rand.Rand
	pool []*world
	w    *world
	from int // whose frames these are
}

// spoil damages a list of frames in one to three ways.
func (d *damager) spoil(frames [][]byte) [][]byte {
	frames = slices.Clone(frames)
	for range 1 + d.rng.IntN(3) {
		if len(frames) == 0 {
			return frames
		}
		at := d.rng.IntN(len(frames))
		switch n := d.rng.IntN(20); {
		case n < 11:
			frames[at] = d.field(frames[at])
		case n < 17:
			frames = d.order(frames, at)
		default:
			frames[at] = d.bytes(frames[at])
		}
	}
	return frames
}

// bytes damages a frame without regard to the grammar.
func (d *damager) bytes(frame []byte) []byte {
	frame = slices.Clone(frame)
	if len(frame) == 0 {
		return frame
	}
	switch at := d.rng.IntN(len(frame)); d.rng.IntN(5) {
	case 0:
		return frame[:at]
	case 1:
		frame[at] ^= 1 << d.rng.IntN(8)
	case 2: // another length
		_, n, err := varint.FromUvarint(frame)
		if err != nil {
			return frame
		}
		return append(varint.ToUvarint(d.number()), frame[n:]...)
	case 3: // a length field of the body, or what stands where one might
		return slices.Concat(frame[:at], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, frame[at:])
	case 4: // 2^63
		return slices.Concat(frame[:at], []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, frame[at:])
	}
	return frame
}

// order drops, repeats, swaps and replays frames.
func (d *damager) order(frames [][]byte, at int) [][]byte {
	other := d.pool[d.rng.IntN(len(d.pool))]
	role := d.from
	if d.rng.IntN(3) == 0 {
		role = 1 - role // a frame of the other role: an echo, if it is of this session
	}
	if d.rng.IntN(3) == 0 {
		other = d.w
	}
	theirs := other.frames[role]
	if len(theirs) == 0 {
		return frames
	}
	from := d.rng.IntN(len(theirs))
	switch d.rng.IntN(8) {
	case 0:
		return slices.Delete(frames, at, at+1)
	case 1:
		return slices.Insert(frames, at, frames[at])
	case 2: // for ever
		return slices.Insert(frames, at, slices.Repeat([][]byte{frames[at]}, 1+d.rng.IntN(600))...)
	case 3:
		with := d.rng.IntN(len(frames))
		frames[at], frames[with] = frames[with], frames[at]
		return frames
	case 4:
		frames[at] = theirs[from]
		return frames
	case 5:
		return slices.Insert(frames, at, theirs[from])
	case 6: // the rest of another session
		return slices.Concat(frames[:at], theirs[from:])
	}
	return frames[:at]
}

// number is one that stands at an edge.
func (d *damager) number() uint64 {
	edges := [...]uint64{
		0, 1, 2, 31, 63, 64, 127, 128, 129, 4096, wire.MaxCells, wire.MaxCells + 1, wire.MaxFrame, wire.MaxFrame + 1,
		burst, burst + 1, MaxCells, MaxCells + 1, 1 << 31, 1 << 32, keyhash.P - 1, keyhash.P, 1 << 53, 1 << 62, math.MaxInt64,
	}
	if d.rng.IntN(4) == 0 {
		return d.rng.Uint64N(300)
	}
	if d.rng.IntN(4) > 0 {
		return edges[d.rng.IntN(12)] // the large ones cost much
	}
	return edges[d.rng.IntN(len(edges))]
}

func (d *damager) digest() dbadapter.Digest {
	switch d.rng.IntN(4) {
	case 0:
		return d.w.sides[0].digest()
	case 1:
		return d.w.sides[1].digest()
	case 2:
		return d.pool[d.rng.IntN(len(d.pool))].sides[d.rng.IntN(2)].digest()
	}
	return dbadapter.Digest{d.rng.Uint64(), d.rng.Uint64(), d.rng.Uint64(), d.rng.Uint64()}
}

// field damages the meaning of a frame, and keeps to the grammar where that is
// possible.
func (d *damager) field(frame []byte) []byte {
	m, _, err := wire.Read(bytes.NewReader(slices.Clone(frame)))
	if err != nil {
		return frame
	}
	flip := d.rng.IntN(2) == 0
	switch m := m.(type) {
	case *wire.Hello:
		d.hello(m)
	case *wire.Welcome:
		switch d.rng.IntN(3) {
		case 0:
			m.Nonce[d.rng.IntN(16)]++
		case 1:
			m.Records = d.number()
		case 2:
			m.Digest = d.digest()
		}
	case *wire.More:
		m.Cells = d.number()
	case *wire.Cells:
		if d.cells(m.Cells, 1024); flip && d.rng.IntN(4) == 0 {
			m.Estimator = make(rateless.Estimator, 1+d.rng.IntN(rateless.EstimatorSize))
		}
	case *wire.Indices:
		d.indices(m)
	case *wire.Offers:
		o := &m.Offers[d.rng.IntN(len(m.Offers))]
		switch d.rng.IntN(4) {
		case 0:
			m.Wanting = !m.Wanting
		case 1:
			o.Hash[0]++
		case 2:
			o.Hashed = !o.Hashed
		case 3:
			d.record(&o.Record, false)
		}
	case *wire.Result:
		switch d.rng.IntN(4) {
		case 0:
			m.Method = 3 - m.Method
		case 1:
			m.Residual = d.digest()
		case 2:
			m.Bytes = d.number()
		case 3:
			m.Estimate = d.number()
		}
	case *wire.Answer:
		if m.Closing = m.Closing != flip; !flip {
			m.Residual = d.digest()
		}
	case *wire.Records:
		d.records(m)
	case *wire.End:
		switch d.rng.IntN(4) {
		case 0:
			m.Applied = d.number()
		case 3:
			m.Collectable = d.number()
		case 1:
			m.Held = d.number()
		case 2:
			for range 1 + d.rng.IntN(3) {
				m.Refusals = append(m.Refusals, wire.Refusal{Index: d.index(), Digest: dbadapter.Digest{d.rng.Uint64()}, Reason: wire.ReasonClock})
			}
		}
	case *wire.Refuse:
		m.Code = wire.Code(d.rng.Uint32())
	}
	if d.rng.IntN(30) == 0 {
		r := &wire.Refuse{Code: wire.Code(d.rng.IntN(12)), Version: byte(d.rng.Uint32()), Text: "no"}
		if r.Code == wire.CodeRemoved {
			r.Statements = [][]byte{[]byte("a statement"), []byte("another")}
		}
		m = r
	}
	return wire.Append(nil, m)
}

func (d *damager) hello(m *wire.Hello) {
	switch d.rng.IntN(14) {
	case 0:
		m.Version = [...]byte{0, 2, 255}[d.rng.IntN(3)]
	case 1:
		m.Mapping += 1 + byte(d.rng.IntN(255))
	case 2:
		m.Namespace[d.rng.IntN(16)]++
	case 3:
		m.Nonce[d.rng.IntN(16)]++
	case 4:
		m.Direction = wire.Direction(d.rng.IntN(3))
	case 5:
		m.Method = wire.Method(d.rng.IntN(3))
	case 6:
		m.DryRun = !m.DryRun
	case 7:
		m.Prefix = [][]byte{nil, []byte("p/"), []byte("q"), make([]byte, dbadapter.MaxKey)}[d.rng.IntN(4)]
	case 8:
		m.Records = d.number()
	case 9:
		m.Digest = d.digest()
	case 10:
		m.Estimator = make(rateless.Estimator, d.rng.IntN(rateless.EstimatorSize+1))
		for i := range m.Estimator {
			m.Estimator[i] = byte(d.rng.Uint32())
		}
	default:
		if len(m.Cells) > 0 && d.rng.IntN(6) == 0 {
			m.Cells = m.Cells[:d.rng.IntN(len(m.Cells))]
		}
		d.cells(m.Cells, 0)
	}
}

// cells forges cells, with the key where that helps. from is about where they
// stand in the sequence.
func (d *damager) cells(cells []rateless.Cell, from int) {
	if len(cells) == 0 {
		return
	}
	at := d.rng.IntN(len(cells))
	pair := func() []rateless.Cell {
		index := d.index()
		sum := d.w.sides[d.rng.IntN(2)].sums[index]
		if sum == 0 || d.rng.IntN(2) == 0 {
			sum = dbadapter.Checksum(keyhash.Seal(uint64(index), d.rng.Uint64N(1<<34)))
		}
		s := rateless.NewWindow(testKeys.Cells, from, from+len(cells))
		if p := coded.Pair(index, sum); d.rng.IntN(2) == 0 {
			s.Add(p)
		} else {
			s.Remove(p)
		}
		forged, _ := s.Cells(from, from+len(cells))
		return forged
	}
	switch d.rng.IntN(6) {
	case 0: // pairs that exist nowhere, or on one side only
		for range 1 + d.rng.IntN(3) {
			for i, c := range pair() {
				plus(&cells[i], c)
			}
		}
	case 1: // half inserted
		for i, c := range pair()[:at] {
			plus(&cells[i], c)
		}
	case 2: // so often that the count wraps
		forged := pair()
		for range [...]int{7, 8, 15, 16, 17, 32}[d.rng.IntN(6)] {
			for i, c := range forged {
				plus(&cells[i], c)
			}
		}
	case 3: // rubbish in range
		for i := range cells[at:] {
			cells[at+i] = rateless.Cell{S1: d.rng.Uint64N(keyhash.P), S2: d.rng.Uint64N(keyhash.P), Count: uint8(d.rng.Uint32N(16))}
		}
	case 4:
		clear(cells[at:])
	case 5: // one pure cell, everywhere
		forged := pair()
		for i := range cells {
			plus(&cells[i], forged[at])
		}
	}
}

// index is one of this world, or a random one.
func (d *damager) index() dbadapter.Index {
	if s := d.w.sides[d.rng.IntN(2)]; len(s.records) > 0 && d.rng.IntN(3) > 0 {
		return s.keys.Hasher.Index(s.records[d.rng.IntN(len(s.records))].Key)
	}
	return dbadapter.Index(1 + d.rng.Uint64N(keyhash.P-1))
}

func (d *damager) indices(m *wire.Indices) {
	switch at := d.rng.IntN(len(m.Indices)); d.rng.IntN(4) {
	case 0:
		m.Role = wire.Role(1 + d.rng.IntN(5))
	case 1:
		if len(m.Indices) > 1 {
			m.Indices = slices.Delete(m.Indices, at, at+1)
		}
	case 2:
		m.Indices[at] = d.index()
	case 3:
		for range 1 + d.rng.IntN(200) {
			m.Indices = append(m.Indices, d.index())
		}
	}
	slices.Sort(m.Indices)
	m.Indices = slices.Compact(m.Indices)
}

func (d *damager) records(m *wire.Records) {
	s := &m.Records[d.rng.IntN(len(m.Records))]
	switch d.rng.IntN(6) {
	case 0:
		s.Stub = !s.Stub
	case 1:
		m.Records = m.Records[:max(1, d.rng.IntN(len(m.Records)))]
	case 2:
		m.Records = append(m.Records, slices.Repeat([]wire.Sent{*s}, 1+d.rng.IntN(100))...)
	case 3: // another authentic record: unasked, older, deleted since, or our own
		w := d.w
		if d.rng.IntN(2) == 0 {
			w = d.pool[d.rng.IntN(len(d.pool))]
		}
		side := w.sides[d.rng.IntN(2)]
		if at, ok := side.find(s.Record.Key); ok && d.rng.IntN(2) == 0 {
			s.Record = side.records[at]
		} else if len(side.records) > 0 {
			s.Record = side.records[d.rng.IntN(len(side.records))]
		}
	default:
		d.record(&s.Record, true)
	}
}

// record forges a record. It signs for the writer that may only read.
func (d *damager) record(r *dbadapter.Record, value bool) {
	switch d.rng.IntN(8) {
	case 0:
		if r.Deleted = !r.Deleted; r.Deleted {
			r.Value = nil
		}
	case 1:
		r.Version.Clock += dbadapter.Timestamp(1 + d.rng.Uint64N(1<<40))
	case 2:
		r.Version.Clock = dbadapter.Timestamp(d.rng.Uint64())
	case 3:
		r.Version.Incarnation++
	case 4:
		r.Key = append(slices.Clone(r.Key), 'x')
	case 5:
		r.Key = []byte("elsewhere")
	case 6:
		if r.Signature = make([]byte, dbadapter.SignatureSize); d.rng.IntN(2) == 0 {
			r.Signature = nil
		}
	case 7:
		r.Version.Writer = readingOnly
		r.Signature = signature(r)
	}
	if value && !r.Deleted && d.rng.IntN(4) == 0 {
		r.Value = []byte("forged")
	}
}
