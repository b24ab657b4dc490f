package bfield

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
)

// A log file, all numbers little-endian:
//
//	"BFLOG" 0x00 0x00 0x02   seed   XXH3-64 of these 16 bytes
//
// and then frames, those of one Append after each other:
//
//	mark (1)   n (4)   ~n (4)   XXH3-64 (8)   count × (op (1)  key (8 + 8)  value (8))   mark (1)
//
// The lower 13 bits of n are the count, the others the number of the frame in its
// Append. All frames of an Append but the last are full: so each tells where the
// Append began. The checksum is of the records, seeded with the offset of the
// frame. So a frame is right at its own place only.
//
// A power cut in the middle of an Append leaves any part of its sectors. Those that
// were not written read as zeros, or are behind the file's end. No sector of a
// frame is zeros, whatever its records are. The first byte and the last are marks,
// and each record begins with its op.

const (
	logMagic   = "BFLOG\x00\x00\x02"
	logHeader  = 24
	frameMark  = 0xb5
	frameHead  = 17
	recordSize = 25
	fullFrame  = frameHead + maxRecords*recordSize + 1
	countBits  = 13
	// sector is what a disk writes whole or not at all.
	sector = 512
)

// frame is what was read of one.
type frame struct {
	records []byte
	began   int64 // the offset of the first frame of its Append
}

func (f frame) size() int64 { return int64(frameHead + len(f.records) + 1) }

// errFrame means that there is no whole frame.
var errFrame = errors.New("no whole frame")

func logStart(seed uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(logMagic), seed)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// appendFrame appends frame number i of an Append, for the offset at of the file.
func appendFrame(b []byte, at int64, i int, records []Record) []byte {
	order, n := binary.LittleEndian, uint32(i<<countBits|len(records))
	b = append(b, frameMark)
	b = order.AppendUint32(b, n)
	b = order.AppendUint32(b, ^n)
	b = append(b, make([]byte, 8)...)
	begin := len(b)
	for _, r := range records {
		b = append(b, byte(r.Op))
		b = order.AppendUint64(b, r.Key[0])
		b = order.AppendUint64(b, r.Key[1])
		b = order.AppendUint64(b, r.Value)
	}
	order.PutUint64(b[begin-8:], xxh3.HashSeed(b[begin:], uint64(at)))
	return append(b, frameMark)
}

// headAt returns the count, the number in its Append and the checksum of a frame
// that begins so. count is 0 if none does.
func headAt(head []byte) (count, i int, sum uint64) {
	order := binary.LittleEndian
	n := order.Uint32(head[1:])
	count = int(n & (1<<countBits - 1))
	if head[0] != frameMark || n != ^order.Uint32(head[5:]) || count > maxRecords {
		return 0, 0, 0
	}
	return count, int(n >> countBits), order.Uint64(head[9:])
}

// readFrame returns the frame at an offset of a file of the given size, or errFrame.
func readFrame(file io.ReaderAt, at, size int64) (frame, error) {
	var head [frameHead]byte
	if size-at < frameHead {
		return frame{}, errFrame
	}
	if _, err := file.ReadAt(head[:], at); err != nil {
		return frame{}, err
	}
	count, i, sum := headAt(head[:])
	length := int64(count)*recordSize + 1
	began := at - int64(i)*fullFrame
	if count == 0 || began < logHeader || length > size-at-frameHead {
		return frame{}, errFrame
	}
	records := make([]byte, length)
	if _, err := file.ReadAt(records, at+frameHead); err != nil {
		return frame{}, err
	}
	records, mark := records[:length-1], records[length-1]
	if mark != frameMark || xxh3.HashSeed(records, uint64(at)) != sum {
		return frame{}, errFrame
	}
	return frame{records, began}, nil
}

// torn reports whether a power cut in the middle of the last Append left what is at
// an offset, in place of a whole frame, and all behind. The frame then lacks sectors,
// and no frame behind is of a later Append. A later one would have begun when this
// one was on disk. Otherwise torn says why not.
func torn(file io.ReaderAt, at, size int64) (why string, err error) {
	lacks, err := lacksSector(file, at, size)
	if err != nil || !lacks {
		return fmt.Sprintf("the frame at %d holds other bytes than were written", at), err
	}
	later, err := laterAppend(file, at, size)
	if err != nil || later {
		return fmt.Sprintf("the frame at %d lacks sectors that were written", at), err
	}
	return "", nil
}

// lacksSector reports whether a sector of the frame at an offset is zeros, or the
// file ends before the frame.
func lacksSector(file io.ReaderAt, at, size int64) (bool, error) {
	b := make([]byte, min(fullFrame+sector, size-at))
	if _, err := file.ReadAt(b, at); err != nil {
		return false, err
	}
	if len(b) < frameHead {
		return true, nil
	}
	count, _, _ := headAt(b)
	end := frameHead + count*recordSize + 1
	if count == 0 {
		// The head lacks a sector or is damaged: what is behind may be anything.
		end = min(len(b), frameHead+int(sector-1-(at+frameHead-1)%sector))
	}
	if end > len(b) {
		return true, nil
	}
	for b = b[:end]; len(b) > 0; {
		n := min(len(b), int(sector-at%sector))
		if zeros(b[:n]) {
			return true, nil
		}
		b, at = b[n:], at+int64(n)
	}
	return false, nil
}

// laterAppend reports whether a whole frame of an Append that began behind an offset
// is in the file. It may begin at any byte: what is at the offset does not tell its
// length.
func laterAppend(file io.ReaderAt, at, size int64) (bool, error) {
	const block = 1 << 16
	buffer := make([]byte, block+frameHead-1)
	for from := at + 1; from+frameHead <= size; from += block {
		b := buffer[:min(int64(len(buffer)), size-from)]
		if _, err := file.ReadAt(b, from); err != nil {
			return false, err
		}
		for i := 0; i+frameHead <= len(b); i++ {
			skip := bytes.IndexByte(b[i:], frameMark)
			if i += skip; skip < 0 || i+frameHead > len(b) {
				break
			}
			if count, _, _ := headAt(b[i:]); count == 0 {
				continue
			}
			f, err := readFrame(file, from+int64(i), size)
			if err != nil && !errors.Is(err, errFrame) {
				return false, err
			}
			if err == nil && f.began > at {
				return true, nil
			}
		}
	}
	return false, nil
}
