package model

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// logged is what one entry of the log says was done:
//
//	what(1) ms(8), then
//	apply           the number of writes, and the writes
//	raise, lower    the clock(8)
//	forget          the number of entries, and their numbers(8)
type logged struct {
	what   byte
	at     time.Time // in milliseconds; the kept log has it
	writes []dbadapter.Write
	to     dbadapter.Timestamp
	seqs   []uint64
}

const (
	logApply = iota
	logRaise
	logLower
	logForget
)

// A write begins with its flags, the action in the two bits from flagAction on.
const (
	flagDeleted = 1 << iota
	flagIf      // the version of the condition follows the head
	flagAction
	_
	flagPast          // the time that was past follows the condition
	flagMust = 1 << 7 // beyond those of the record's optional fields
)

func newEntry(e *logged) []byte {
	b := append(make([]byte, entryHead), e.what)
	b = binary.BigEndian.AppendUint64(b, uint64(e.at.UnixMilli()))
	switch e.what {
	case logApply:
		b = binary.AppendUvarint(b, uint64(len(e.writes)))
		for i := range e.writes {
			b = appendWrite(b, &e.writes[i])
		}
	case logRaise, logLower:
		b = binary.BigEndian.AppendUint64(b, uint64(e.to))
	case logForget:
		b = binary.AppendUvarint(b, uint64(len(e.seqs)))
		for _, seq := range e.seqs {
			b = binary.BigEndian.AppendUint64(b, seq)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-entryHead))
	binary.BigEndian.PutUint32(b[4:], entrySum(b))
	return b
}

func appendWrite(b []byte, w *dbadapter.Write) []byte {
	r := &w.Record
	flags := byte(w.Action)*flagAction | r.OptionalFlags()
	if r.Deleted {
		flags |= flagDeleted
	}
	if w.If != nil {
		flags |= flagIf
	}
	if w.Past != 0 {
		flags |= flagPast
	}
	if w.Must {
		flags |= flagMust
	}
	b = append(b, flags)
	b, _ = r.Version.AppendBinary(b) // never fails
	b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
	if w.If != nil {
		b, _ = w.If.AppendBinary(b)
	}
	if w.Past != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(w.Past))
	}
	b = r.AppendOptional(b)
	for _, field := range [][]byte{r.Key, r.Value, r.Signature} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return b
}

func entrySum(entry []byte) uint32 {
	return crc32.Update(crc32.Checksum(entry[:4], castagnoli), castagnoli, entry[entryHead:])
}

var errTorn = errors.New("the entry does not fit its checksum")

// readEntry reads the entry at the beginning of the bytes. The records alias
// them.
func readEntry(b []byte) (e *logged, size int, err error) {
	if len(b) < entryHead {
		return nil, 0, errTorn
	}
	length := uint64(binary.BigEndian.Uint32(b))
	if length == 0 || length > uint64(len(b)-entryHead) {
		return nil, 0, errTorn
	}
	size = entryHead + int(length)
	if binary.BigEndian.Uint32(b[4:]) != entrySum(b[:size]) {
		return nil, 0, errTorn
	}
	r := reader{rest: b[entryHead:size]}
	e = &logged{what: r.byte(), at: time.UnixMilli(int64(r.uint64())).UTC()}
	switch e.what {
	case logApply:
		for n := r.number(); n > 0 && r.err == nil; n-- {
			e.writes = append(e.writes, r.write())
		}
	case logRaise, logLower:
		e.to = dbadapter.Timestamp(r.uint64())
	case logForget:
		for n := r.number(); n > 0 && r.err == nil; n-- {
			e.seqs = append(e.seqs, r.uint64())
		}
	default:
		r.err = errTorn
	}
	if len(r.rest) > 0 {
		r.err = errTorn
	}
	if r.err != nil {
		return nil, 0, r.err
	}
	return e, size, nil
}

// reader takes fields off the body of an entry, until one is cut short.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n uint64) (field []byte) {
	if n > uint64(len(r.rest)) {
		r.rest, r.err = nil, errTorn
		return nil
	}
	field, r.rest = r.rest[:n:n], r.rest[n:]
	return field
}

func (r *reader) number() uint64 {
	n, taken := binary.Uvarint(r.rest)
	if taken <= 0 {
		r.err = errTorn
		return 0
	}
	r.rest = r.rest[taken:]
	return n
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) version() (v dbadapter.Version) {
	if b := r.take(dbadapter.VersionSize); b != nil {
		_ = v.UnmarshalBinary(b) // it has the length
	}
	return v
}

func (r *reader) write() (w dbadapter.Write) {
	flags := r.byte()
	w.Action, w.Record.Deleted = dbadapter.Action(flags&(flagPast-1)/flagAction), flags&flagDeleted != 0
	w.Record.Version, w.Record.Signer = r.version(), dbadapter.WriterID(r.uint64())
	if flags&flagIf != 0 {
		v := r.version()
		w.If = &v
	}
	w.Must = flags&flagMust != 0
	if flags&flagPast != 0 {
		w.Past = dbadapter.Timestamp(r.uint64())
	}
	if r.err == nil {
		r.rest, r.err = w.Record.ReadOptional(flags, r.rest)
	}
	w.Record.Key, w.Record.Value, w.Record.Signature = r.take(r.number()), r.take(r.number()), r.take(r.number())
	return w
}
