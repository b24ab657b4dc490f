package model

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// The log is one file of entries, a commit each:
//
//	length of the body  4 bytes
//	CRC-32C of both     4 bytes
//	body                what was done; see logged
//
// A second file, the mark, holds the length up to which the log is synced. It has two
// slots of 16 bytes (the length, its complement cut to 4 bytes, a CRC). They are
// written in turn, so that a power cut tears one and leaves the other. openLog cuts the
// log off where it was never acknowledged, and refuses it where acknowledged bytes are
// damaged.
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
func openLog(disk *sim.Disk, name string, replay func(*logged) error) (*wal, error) {
	l := &wal{log: disk.File(name + "log"), mark: disk.File(name + "mark")}
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
		e, size, err := readEntry(data[end:])
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
		if err := replay(e); err != nil {
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
func (l *wal) append(e *logged) error { return l.log.Write(len(l.log.Bytes()), newEntry(e)) }

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
