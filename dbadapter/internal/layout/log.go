package layout

import (
	"encoding/binary"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// An entry of the change log holds the changes of one commit, or a part of them, and
// stands under the sequence number of the last one:
//
//	count(uvarint) { index(6) old(6) new(6) digest(32) records(varint) length(uvarint) key }…  seal(8)

// changeSize is the least that a change takes.
const changeSize = 3*NumberSize + dbadapter.DigestSize + 2

// An entry is bounded to some 80 KiB, however long the keys are.
const (
	logEntryChanges = 1024
	logEntryBytes   = 64 << 10
)

const logEntry = "an entry of the change log"

// LogEntry is how many of the changes, from the first on, stand in one entry: at least
// one.
func LogEntry(changes []dbadapter.Change) int {
	size := 0
	for i := range changes {
		if size += changeSize + len(changes[i].Key); i > 0 && (i == logEntryChanges || size > logEntryBytes) {
			return i
		}
	}
	return len(changes)
}

// AppendLogEntry appends an entry of the changes.
func AppendLogEntry(b []byte, number uint32, changes []dbadapter.Change) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = Append48(b, uint64(c.Index))
		b = Append48(b, uint64(c.Old))
		b = Append48(b, uint64(c.New))
		b = c.Delta.AppendBinary(b)
		b = binary.AppendVarint(b, int64(c.Records))
		b = binary.AppendUvarint(b, uint64(len(c.Key)))
		b = append(b, c.Key...)
	}
	return AppendSeal(b, start, Seed(number, KindLog, changes[len(changes)-1].Seq))
}

// ReadLogEntry decodes the changes of the entry under a sequence number, which refer to
// it.
func ReadLogEntry(b []byte, number uint32, last uint64) ([]dbadapter.Change, error) {
	body, err := Unseal(b, Seed(number, KindLog, last), logEntry)
	if err != nil {
		return nil, err
	}
	count, w := binary.Uvarint(body)
	rest := body[max(w, 0):]
	if w <= 0 || count == 0 || count > last || count > uint64(len(rest)/changeSize) {
		return nil, damage.Corrupt(logEntry, "it has %d bytes", len(body))
	}
	changes := make([]dbadapter.Change, count)
	for i := range changes {
		c := &changes[i]
		c.Seq = last - (count - 1 - uint64(i))
		if rest, err = readChange(rest, c); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 {
		return nil, damage.Corrupt(logEntry, "something stands behind its end")
	}
	return changes, nil
}

// readChange takes a change off the bytes of an entry.
func readChange(b []byte, c *dbadapter.Change) (rest []byte, err error) {
	if len(b) < changeSize {
		return nil, damage.Corrupt(logEntry, "it is cut short")
	}
	c.Index = dbadapter.Index(Read48(b))
	c.Old = dbadapter.Checksum(Read48(b[NumberSize:]))
	c.New = dbadapter.Checksum(Read48(b[2*NumberSize:]))
	c.Delta = dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[3*NumberSize:]))
	b = b[3*NumberSize+dbadapter.DigestSize:]
	records, w := binary.Varint(b)
	if w <= 0 {
		return nil, damage.Corrupt(logEntry, "it is cut short")
	}
	b = b[w:]
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, damage.Corrupt(logEntry, "a key goes past its end")
	}
	c.Records, c.Key = int(records), b[w:w+int(n):w+int(n)]
	return b[w+int(n):], nil
}
