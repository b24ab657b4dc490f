package layout

import (
	"encoding/binary"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// Meta is the head of a namespace: what it knows of itself. It is written with each
// commit.
type Meta struct {
	Seq     uint64 // of the last change
	First   uint64 // of the oldest change in the log; Seq+1 if it is empty
	Records uint64 // tombstones included
	Latest  dbadapter.Timestamp
	Raised  dbadapter.Timestamp // the last clock given to Raise that was above Ceiling
	Log     dbadapter.LogID
	Kept    Kept
	Own     uint64           // what the store makes of it
	Digest  dbadapter.Digest // the sum of the records' digests
}

// Kept is what a namespace's head says of its kept log.
type Kept struct {
	Seq       uint64 // of the last entry
	SetAside  uint64 // entries of each kind
	Conflicts uint64
	Bytes     uint64 // keys and values of the conflicts
}

// Count moves the count of a kind by an entry of a size, up or down.
func (k *Kept) Count(why dbadapter.Why, size, by int) {
	if why == dbadapter.KeptConflict {
		k.Conflicts += uint64(by)
		k.Bytes += uint64(by * size)
	} else {
		k.SetAside += uint64(by)
	}
}

// CountRecord moves the count of a kind by the entry of a record.
func (k *Kept) CountRecord(why dbadapter.Why, r *dbadapter.Record, by int) {
	k.Count(why, len(r.Key)+len(r.Value), by)
}

// Of is how many entries of a kind there are.
func (k *Kept) Of(why dbadapter.Why) int {
	if why == dbadapter.KeptConflict {
		return int(k.Conflicts)
	}
	return int(k.SetAside)
}

// Full reports whether there are more conflicts than are kept.
func (k *Kept) Full() bool {
	return k.Conflicts > dbadapter.MaxConflicts || k.Bytes > dbadapter.MaxConflictBytes
}

// Ceiling is what a restarted clock goes on from.
func (m *Meta) Ceiling() dbadapter.Timestamp { return max(m.Latest, m.Raised) }

// Raise raises the ceiling.
func (m *Meta) Raise(to dbadapter.Timestamp) {
	if to > m.Ceiling() {
		m.Raised = to
	}
}

// Lower lowers the ceiling.
func (m *Meta) Lower(to dbadapter.Timestamp) {
	m.Latest, m.Raised = min(m.Latest, to), min(m.Raised, to)
}

const (
	metaWords = 11
	metaSize  = 8*metaWords + dbadapter.DigestSize
)

// Encode is the stored form:
//
//	seq(8) first(8) records(8) latest(8) raised(8) log(8) kept(8×4) own(8) digest(32)  seal(8)
func (m *Meta) Encode(number uint32) []byte {
	b := make([]byte, 0, metaSize+SealSize)
	for _, n := range [metaWords]uint64{
		m.Seq, m.First, m.Records, uint64(m.Latest), uint64(m.Raised), uint64(m.Log),
		m.Kept.Seq, m.Kept.SetAside, m.Kept.Conflicts, m.Kept.Bytes, m.Own,
	} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = m.Digest.AppendBinary(b)
	return AppendSeal(b, 0, Seed(number, KindMeta, 0))
}

// Decode reads the stored form.
func (m *Meta) Decode(b []byte, number uint32) error {
	const what = "the head of a namespace"
	body, err := Unseal(b, Seed(number, KindMeta, 0), what)
	if err != nil {
		return err
	}
	if len(body) != metaSize {
		return damage.Corrupt(what, "it has %d bytes", len(body))
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	*m = Meta{
		at(0), at(1), at(2), dbadapter.Timestamp(at(3)), dbadapter.Timestamp(at(4)), dbadapter.LogID(at(5)),
		Kept{at(6), at(7), at(8), at(9)},
		at(10),
		dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(body[8*metaWords:])),
	}
	return nil
}
