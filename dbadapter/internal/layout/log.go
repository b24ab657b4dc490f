package layout

import (
	"encoding/binary"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// An entry of the change log holds the changes of one commit, or a part of them, and
// stands under the sequence number of the last one:
//
//	count(uvarint) { index(6) old(6) new(6) digest(32) records(uvarint) [keys(uvarint)] { length(uvarint) key }… }…  seal(8)
//
// The two lowest bits of records are flags: keys says how many keys there are, else there
// is one; and the bucket is shared. What stands above them is the signed number, as
// encoding/binary's varints have it: nearly always all of it is one byte.

// changeSize is the least that a change takes.
const changeSize = 3*NumberSize + dbadapter.DigestSize + 2

const (
	flagKeys = 1 << iota
	flagShared
	flagBits = iota
)

// An entry is bounded to some 80 KiB, however long the keys are. The exception is a
// single change of a bucket that a member has filled with keys of one index. It names at
// most those before the commit and those after it, which is half of kv.MaxEntry.
const (
	logEntryChanges = 1024
	logEntryBytes   = 64 << 10
)

const logEntry = "an entry of the change log"

// LogEntries yields the changes in pieces of an entry each.
func LogEntries(changes []dbadapter.Change) iter.Seq[[]dbadapter.Change] {
	return func(yield func([]dbadapter.Change) bool) {
		for len(changes) > 0 {
			n := inOneEntry(changes)
			if !yield(changes[:n]) {
				return
			}
			changes = changes[n:]
		}
	}
}

// inOneEntry is how many of the changes, from the first on, stand in one entry: at least
// one.
func inOneEntry(changes []dbadapter.Change) int {
	size := 0
	for i := range changes {
		if size += changeSize + keysSize(changes[i].Keys); i > 0 && (i == logEntryChanges || size > logEntryBytes) {
			return i
		}
	}
	return len(changes)
}

func keysSize(keys [][]byte) (n int) {
	for _, key := range keys {
		n += len(key)
	}
	return n
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
		b = appendKeys(b, c)
	}
	return AppendSeal(b, start, Seed(number, KindLog, changes[len(changes)-1].Seq))
}

func appendKeys(b []byte, c *dbadapter.Change) []byte {
	records := uint64(c.Records<<1^c.Records>>63) << flagBits
	if c.Shared {
		records |= flagShared
	}
	if len(c.Keys) == 1 {
		b = binary.AppendUvarint(b, records)
	} else {
		b = binary.AppendUvarint(b, records|flagKeys)
		b = binary.AppendUvarint(b, uint64(len(c.Keys)))
	}
	for _, key := range c.Keys {
		b = AppendPiece(b, key)
	}
	return b
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
	keys := make([][]byte, 0, count) // mostly one a change
	for i := range changes {
		c := &changes[i]
		c.Seq = last - (count - 1 - uint64(i))
		start := len(keys)
		if rest, keys, err = readChange(rest, c, keys); err != nil {
			return nil, err
		}
		c.Keys = keys[start:len(keys):len(keys)]
	}
	if len(rest) > 0 {
		return nil, damage.Corrupt(logEntry, "something stands behind its end")
	}
	return changes, nil
}

// readChange takes a change off the bytes of an entry, and appends its keys.
func readChange(b []byte, c *dbadapter.Change, keys [][]byte) (rest []byte, _ [][]byte, err error) {
	cut := func() ([]byte, [][]byte, error) { return nil, nil, damage.Corrupt(logEntry, "it is cut short") }
	if len(b) < changeSize {
		return cut()
	}
	c.Index = dbadapter.Index(Read48(b))
	c.Old = dbadapter.Checksum(Read48(b[NumberSize:]))
	c.New = dbadapter.Checksum(Read48(b[2*NumberSize:]))
	c.Delta = dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[3*NumberSize:]))
	b = b[3*NumberSize+dbadapter.DigestSize:]
	records, w := binary.Uvarint(b)
	if w <= 0 {
		return cut()
	}
	b = b[w:]
	count := uint64(1)
	if records&flagKeys != 0 {
		if count, w = binary.Uvarint(b); w <= 0 || count > uint64(len(b)) {
			return cut()
		}
		b = b[w:]
	}
	c.Shared = records&flagShared != 0
	records >>= flagBits
	c.Records = int(records>>1) ^ -int(records&1)
	for range count {
		var key []byte
		if key, b, err = TakePiece(b, logEntry); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return b, keys, nil
}
