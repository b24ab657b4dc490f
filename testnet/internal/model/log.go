package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// The log is one file of entries, a commit each:
//
//	length of the body  4 bytes
//	CRC-32C of both     4 bytes
//	body                the writes
//
// A second file, the mark, holds the length up to which the log is synced. It has
// two slots of 16 bytes (the length, its complement cut to 4 bytes, a CRC),
// written in turn, so that a power cut tears one and leaves the other. openLog
// cuts the log off where it was never acknowledged, and refuses it where
// acknowledged bytes are damaged.
type wal struct {
	log, mark *sim.File
	slot      int // the one to be written next
}

const (
	entryHead = 8
	slotSize  = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openLog reads the whole log, and cuts off an entry that a power cut has torn.
// Damage is dbadapter.ErrCorrupt.
func openLog(disk *sim.Disk, replay func(writes []dbadapter.Write, lower dbadapter.Timestamp) error) (*wal, error) {
	l := &wal{log: disk.File("log"), mark: disk.File("mark")}
	if len(l.mark.Bytes()) < 2*slotSize {
		if len(l.log.Bytes()) > 0 {
			return nil, corrupt("there is a log, but no mark")
		}
		l.mark.Truncate(0)
		if err := l.mark.Write(0, make([]byte, 2*slotSize)); err != nil {
			return nil, err
		}
		for range 2 {
			if err := l.note(); err != nil {
				return nil, err
			}
		}
		l.mark.Sync()
	}
	synced, torn, err := l.read()
	if err != nil {
		return nil, err
	}
	end := 0
	for data := l.log.Bytes(); end < len(data); {
		writes, lower, size, err := readEntry(data[end:])
		if err != nil {
			if end < synced {
				return nil, corrupt("byte %d of the log, of which %d were synced: %v", end, synced, err)
			}
			if torn {
				// Slot and end of the log are written one after the other, so
				// that one power cut tears only one of them.
				return nil, corrupt("both the mark and byte %d of the log are damaged", end)
			}
			break
		}
		if err := replay(writes, lower); err != nil {
			return nil, err
		}
		end += size
	}
	if end < synced {
		return nil, corrupt("the log ends at byte %d, and %d were synced", end, synced)
	}
	l.log.Truncate(end)
	if err := l.commit(); err != nil {
		return nil, err
	}
	return l, nil
}

// read returns the length up to which the log is synced, and whether a slot is
// torn. The next write goes to the torn slot, else to the older one.
func (l *wal) read() (synced int, torn bool, err error) {
	var lengths [2]int
	for n := range lengths {
		s := l.mark.Bytes()[n*slotSize:]
		lengths[n] = int(binary.BigEndian.Uint64(s))
		if binary.BigEndian.Uint32(s[8:]) != ^uint32(lengths[n]) || binary.BigEndian.Uint32(s[12:]) != crc32.Checksum(s[:12], castagnoli) {
			lengths[n] = -1
		}
	}
	if lengths[0] > lengths[1] {
		l.slot = 1
	}
	synced = max(lengths[0], lengths[1])
	if synced < 0 {
		return 0, true, corrupt("both slots of the mark are damaged")
	}
	return synced, min(lengths[0], lengths[1]) < 0, nil
}

// note writes the length of the log into the next slot.
func (l *wal) note() error {
	length := uint64(len(l.log.Bytes()))
	s := binary.BigEndian.AppendUint64(make([]byte, 0, slotSize), length)
	s = binary.BigEndian.AppendUint32(s, ^uint32(length))
	s = binary.BigEndian.AppendUint32(s, crc32.Checksum(s, castagnoli))
	if err := l.mark.Write(l.slot*slotSize, s); err != nil {
		return err
	}
	l.slot = 1 - l.slot
	return nil
}

// append adds an entry, which is not synced yet.
func (l *wal) append(writes []dbadapter.Write) error {
	return l.log.Write(len(l.log.Bytes()), newEntry(writes, 0))
}

// lower adds an entry that brings the high-water mark down.
func (l *wal) lower(to dbadapter.Timestamp) error {
	return l.log.Write(len(l.log.Bytes()), newEntry(nil, to))
}

// commit makes all entries so far survive a power cut.
func (l *wal) commit() error {
	l.log.Sync()
	if err := l.note(); err != nil {
		return err
	}
	l.mark.Sync()
	return nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", dbadapter.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Flags of a write in an entry.
const (
	flagDeleted = 1 << iota
	flagReplace // the version that it replaces follows the head
)

// newEntry is an entry of writes, or one without that lowers the high-water mark.
func newEntry(writes []dbadapter.Write, lower dbadapter.Timestamp) []byte {
	b := make([]byte, entryHead)
	b = binary.AppendUvarint(b, uint64(len(writes)))
	if len(writes) == 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(lower))
	}
	for i := range writes {
		r := &writes[i].Record
		flags := byte(0)
		if r.Deleted {
			flags |= flagDeleted
		}
		if writes[i].Replace {
			flags |= flagReplace
		}
		b = append(b, flags)
		b, _ = r.Version.AppendBinary(b) // never fails
		b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
		if writes[i].Replace {
			b, _ = writes[i].If.AppendBinary(b)
		}
		for _, field := range [][]byte{r.Key, r.Value, r.Signature} {
			b = binary.AppendUvarint(b, uint64(len(field)))
			b = append(b, field...)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-entryHead))
	binary.BigEndian.PutUint32(b[4:], entrySum(b))
	return b
}

func entrySum(entry []byte) uint32 {
	return crc32.Update(crc32.Checksum(entry[:4], castagnoli), castagnoli, entry[entryHead:])
}

var errTorn = errors.New("the entry does not fit its checksum")

// readEntry reads the entry at the beginning of the bytes. The records alias
// them.
func readEntry(b []byte) (writes []dbadapter.Write, lower dbadapter.Timestamp, size int, err error) {
	if len(b) < entryHead {
		return nil, 0, 0, errTorn
	}
	length := uint64(binary.BigEndian.Uint32(b))
	if length == 0 || length > uint64(len(b)-entryHead) {
		return nil, 0, 0, errTorn
	}
	size = entryHead + int(length)
	if binary.BigEndian.Uint32(b[4:]) != entrySum(b[:size]) {
		return nil, 0, 0, errTorn
	}
	rest := b[entryHead:size]
	number := func() (n uint64) {
		n, taken := binary.Uvarint(rest)
		if taken <= 0 {
			err = errTorn
			return 0
		}
		rest = rest[taken:]
		return n
	}
	take := func(n uint64) (field []byte) {
		if n > uint64(len(rest)) {
			err = errTorn
			return nil
		}
		field, rest = rest[:n:n], rest[n:]
		return field
	}
	n := number()
	if n == 0 && err == nil {
		if mark := take(8); err == nil {
			lower = dbadapter.Timestamp(binary.BigEndian.Uint64(mark))
		}
	}
	for ; n > 0 && err == nil; n-- {
		var w dbadapter.Write
		if head := take(1 + dbadapter.VersionSize + 8); err == nil {
			w.Record.Deleted, w.Replace = head[0]&flagDeleted != 0, head[0]&flagReplace != 0
			err = w.Record.Version.UnmarshalBinary(head[1 : 1+dbadapter.VersionSize])
			w.Record.Signer = dbadapter.WriterID(binary.BigEndian.Uint64(head[1+dbadapter.VersionSize:]))
		}
		if w.Replace && err == nil {
			w.If = new(dbadapter.Version)
			if held := take(dbadapter.VersionSize); err == nil {
				err = w.If.UnmarshalBinary(held)
			}
		}
		w.Record.Key, w.Record.Value, w.Record.Signature = take(number()), take(number()), take(number())
		writes = append(writes, w)
	}
	if err == nil && len(rest) > 0 {
		err = errTorn
	}
	return writes, lower, size, err
}
