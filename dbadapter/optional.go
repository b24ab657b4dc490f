package dbadapter

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/hlc"
)

// The optional fields of a record, Expires and Replaces, have one binary form in
// digests, in signed bytes, on the wire and on disk. It is empty if both fields are:
//
//	[expires:8] [n:1 (writer:8 clock:8)*n]
//
// Numbers are big-endian. Each field is there exactly if its flag is set.
const (
	FlagExpires  = 1 << 5
	FlagReplaces = 1 << 6
)

// MaxOptional is the most bytes that the optional fields take.
const MaxOptional = 8 + 1 + MaxReplaces*replacedSize

const replacedSize = 16

// OptionalFlags says which of the optional fields the record has.
func (r *Record) OptionalFlags() (flags byte) {
	if r.Expires != 0 {
		flags |= FlagExpires
	}
	if len(r.Replaces) > 0 {
		flags |= FlagReplaces
	}
	return flags
}

// OptionalSize is how many bytes the optional fields take.
func (r *Record) OptionalSize() (n int) {
	if r.Expires != 0 {
		n = 8
	}
	if len(r.Replaces) > 0 {
		n += 1 + len(r.Replaces)*replacedSize
	}
	return n
}

// AppendOptional appends the optional fields.
func (r *Record) AppendOptional(b []byte) []byte {
	if r.Expires != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Expires))
	}
	if len(r.Replaces) > 0 {
		b = appendReplaces(append(b, byte(len(r.Replaces))), r.Replaces)
	}
	return b
}

func appendReplaces(b []byte, replaces []Replaced) []byte {
	for _, p := range replaces {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Writer))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Clock))
	}
	return b
}

// ReadOptional reads the optional fields that flags announce from the beginning
// of b, and returns the rest. Version and Deleted must be set: fields that do not
// fit them, or have another form than AppendOptional gives them, are refused.
func (r *Record) ReadOptional(flags byte, b []byte) (rest []byte, err error) {
	if flags&FlagExpires != 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("the expiry is cut short")
		}
		r.Expires, b = Timestamp(binary.BigEndian.Uint64(b)), b[8:]
		if r.Expires == 0 {
			return nil, fmt.Errorf("an expiry of 0 is spelt out")
		}
	}
	if flags&FlagReplaces != 0 {
		if len(b) < 1 {
			return nil, fmt.Errorf("what it replaces is cut short")
		}
		n := int(b[0])
		switch b = b[1:]; {
		case n == 0:
			return nil, fmt.Errorf("an empty list of what it replaces is spelt out")
		case n > MaxReplaces:
			return nil, fmt.Errorf("it names %d writers that it replaces; at most %d are allowed", n, MaxReplaces)
		case len(b) < n*replacedSize:
			return nil, fmt.Errorf("what it replaces is cut short")
		}
		r.Replaces = make([]Replaced, n)
		for i := range r.Replaces {
			r.Replaces[i] = Replaced{WriterID(binary.BigEndian.Uint64(b)), Timestamp(binary.BigEndian.Uint64(b[8:]))}
			b = b[replacedSize:]
		}
	}
	return b, r.validOptional()
}

// validOptional reports, as an ErrLimit, what is wrong with the optional fields.
func (r *Record) validOptional() error {
	if r.Expires != 0 {
		switch {
		case r.Deleted:
			return fmt.Errorf("%w: a tombstone does not expire", ErrLimit)
		case r.Expires > MaxExpires || r.Expires != TimestampAt(r.Expires.Time()):
			return fmt.Errorf("%w: the expiry %d is no whole millisecond before the year 10000", ErrLimit, uint64(r.Expires))
		}
	}
	switch {
	case len(r.Replaces) == 0:
		return nil
	case len(r.Replaces) > MaxReplaces:
		return fmt.Errorf("%w: the record names %d writers that it replaces; at most %d are allowed", ErrLimit, len(r.Replaces), MaxReplaces)
	case r.Version.Writer == 0:
		return fmt.Errorf("%w: a dated import replaces no version by name", ErrLimit)
	}
	last := WriterID(0)
	for _, p := range r.Replaces {
		if p.Writer <= last {
			return fmt.Errorf("%w: the writers that a record replaces are not in order, or one has the id 0", ErrLimit)
		}
		// Writers that build on this record take the entry over. One from the
		// future would count what its writer has yet to write as seen.
		if p.Clock >= r.Version.Clock {
			return fmt.Errorf("%w: the record replaces a version that is not older than its own", ErrLimit)
		}
		last = p.Writer
	}
	return nil
}

// MaxExpires is the latest expiry: the last millisecond that RFC 3339 can name.
var MaxExpires = Timestamp(hlc.At(time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)))

// Expired reports whether the record has expired by the given time: it reads as
// absent, and still syncs as what it is.
func (r *Record) Expired(now time.Time) bool {
	return r.Expires != 0 && !r.Expires.Time().After(now)
}
