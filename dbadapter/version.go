package dbadapter

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/hlc"
)

// Timestamp is a reading of a hybrid logical clock (Kulkarni et al., "Logical Physical
// Clocks", 2014). It has 48 bits of milliseconds since 1970 above a 16-bit counter.
// Later readings are greater.
type Timestamp uint64

// TimestampAt is the first reading of the millisecond that t falls in.
func TimestampAt(t time.Time) Timestamp { return Timestamp(hlc.At(t)) }

// Time is the physical part of the reading, in UTC.
func (t Timestamp) Time() time.Time { return hlc.Timestamp(t).Time() }

// Epoch is the earliest time a version may carry: checksums count from it.
var Epoch = hlc.Epoch

// WriterID names a node in versions: the first 8 bytes, big-endian, of the
// SHA-256 of its public key. 0 means no writer (a dated import).
type WriterID uint64

// String is the id in hexadecimal.
func (w WriterID) String() string { return fmt.Sprintf("%016x", uint64(w)) }

// Version orders the writes of a record: later clock, then greater writer, then greater
// incarnation wins. Incarnation is 64 random bits, fresh each time a node opens its
// store. So neither a restart, nor a clock set back, nor a restored copy uses a version
// twice. It is fresh, too, for a record that supersedes what it names alone.
//
// A dated import has the clock of its data, and neither writer nor incarnation. So the
// same data imported at two sites is the same record.
type Version struct {
	Clock       Timestamp
	Writer      WriterID
	Incarnation uint64
}

// Compare returns −1, 0 or +1 as v is before, the same as, or after o.
func (v Version) Compare(o Version) int {
	return cmp.Or(
		cmp.Compare(v.Clock, o.Clock),
		cmp.Compare(v.Writer, o.Writer),
		cmp.Compare(v.Incarnation, o.Incarnation),
	)
}

// IsZero reports whether v is the version of nothing.
func (v Version) IsZero() bool { return v == Version{} }

// AppendBinary appends the 24-byte form: clock, writer, incarnation, each
// big-endian, so that bytes sort as versions do.
func (v Version) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, uint64(v.Clock))
	b = binary.BigEndian.AppendUint64(b, uint64(v.Writer))
	return binary.BigEndian.AppendUint64(b, v.Incarnation), nil
}

// UnmarshalBinary reads the 24-byte form.
func (v *Version) UnmarshalBinary(b []byte) error {
	if len(b) != VersionSize {
		return fmt.Errorf("a version has %d bytes, not %d", VersionSize, len(b))
	}
	v.Clock = Timestamp(binary.BigEndian.Uint64(b))
	v.Writer = WriterID(binary.BigEndian.Uint64(b[8:]))
	v.Incarnation = binary.BigEndian.Uint64(b[16:])
	return nil
}

// String is the text form, clock-writer-incarnation in hexadecimal; it is what
// an ETag carries, and ParseVersion reads it back.
func (v Version) String() string {
	return fmt.Sprintf("%016x-%016x-%016x", uint64(v.Clock), uint64(v.Writer), v.Incarnation)
}

// ParseVersion reads the text form of a version.
func ParseVersion(s string) (Version, error) {
	var v Version
	const form = "0000000000000000-0000000000000000-0000000000000000"
	if len(s) != len(form) {
		return v, fmt.Errorf("version %q: want three groups of 16 hexadecimal digits", s)
	}
	n, err := fmt.Sscanf(s, "%16x-%16x-%16x", (*uint64)(&v.Clock), (*uint64)(&v.Writer), &v.Incarnation)
	if err != nil || n != 3 || v.String() != s {
		return Version{}, fmt.Errorf("version %q: want three groups of 16 hexadecimal digits", s)
	}
	return v, nil
}

// Replaced is the latest version of a key that one writer made, as far as the
// writer of a record knew when it replaced it.
type Replaced struct {
	Writer WriterID
	Clock  Timestamp
}

// Supersedes reports whether the record's writer knew the version of its key when it
// wrote the record. Then the record names that version or a later one of the same
// writer, or the writer wrote both in one incarnation. Otherwise the two contents were
// written concurrently, and the version's is lost where the record takes its place,
// unless it is kept.
//
// False alarms are possible where more than MaxReplaces writers have written the key,
// or a dated record was in between, which names nothing. A writer that was restored
// from a copy, or restamped, may have made versions out of order. Then a later one does
// not prove that an earlier one was known.
func (r *Record) Supersedes(v Version) bool {
	if v.Writer == r.Version.Writer && v.Incarnation == r.Version.Incarnation {
		return v.Clock < r.Version.Clock
	}
	at, ok := slices.BinarySearchFunc(r.Replaces, v.Writer, compareWriter)
	return ok && r.Replaces[at].Clock >= v.Clock
}

func compareWriter(p Replaced, w WriterID) int {
	switch {
	case p.Writer < w:
		return -1
	case p.Writer > w:
		return 1
	}
	return 0
}

// Replace sets what the record replaces: the version of the record held, and what that one
// replaced; where different nodes hold different ones, of each. It is nil where the key holds
// nothing. The record has its version already. A dated record held is not named, since it has
// no writer. Nor is a version that this writer made in the same incarnation, which Supersedes
// knows without. What is not older than the record itself, which only a restamp replaces, is
// left out. Beyond MaxReplaces the oldest clocks go.
func (r *Record) Replace(held ...*Record) {
	r.Replaces = nil
	if r.Version.Writer == 0 {
		return
	}
	var all []Replaced
	name := func(p Replaced) {
		at, ok := slices.BinarySearchFunc(all, p.Writer, compareWriter)
		if ok {
			all[at].Clock = max(all[at].Clock, p.Clock)
		} else {
			all = slices.Insert(all, at, p)
		}
	}
	for _, h := range held {
		if h == nil {
			continue
		}
		for _, p := range h.Replaces {
			name(p)
		}
		if v := h.Version; v.Writer != 0 && (v.Writer != r.Version.Writer || v.Incarnation != r.Version.Incarnation) {
			name(Replaced{v.Writer, v.Clock})
		}
	}
	all = slices.DeleteFunc(all, func(p Replaced) bool { return p.Clock >= r.Version.Clock })
	for len(all) > MaxReplaces {
		oldest := 0
		for i, p := range all {
			if p.Clock < all[oldest].Clock {
				oldest = i
			}
		}
		all = slices.Delete(all, oldest, oldest+1)
	}
	if len(all) > 0 {
		r.Replaces = all
	}
}
