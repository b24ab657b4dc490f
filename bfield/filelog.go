package bfield

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/zeebo/xxh3"
)

// A log file, all numbers little-endian:
//
//	"BFLOG" 0x00 0x00 0x01   seed   XXH3-64 of these 16 bytes
//
// and then frames, each of records that were appended together:
//
//	count (4)   ~count (4)   XXH3-64 (8)   count × (op (1)  key (8 + 8)  value (8))
//
// The checksum is of the records, seeded with the offset of the frame, so that
// a frame is right at its own place only.

const (
	logMagic   = "BFLOG\x00\x00\x01"
	logHeader  = 24
	frameHead  = 16
	recordSize = 25
	// sector is what a disk writes whole or not at all.
	sector = 512
)

// FileLog is a Log in a file that only grows. Append returns when the records
// are on disk. A frame that a crash left unfinished at the end of the file was
// never acknowledged, and is cut off; damage anywhere else is ErrLog.
//
// A log is open once at a time. A lock on a file beside it, with the ending
// .lock, keeps a second one out, of this process or another, on Linux, macOS
// and the BSDs; elsewhere the caller must see to it.
type FileLog struct {
	path string
	seed uint64
	lock *os.File // the log's own file will not do: Replace changes it

	mu      sync.Mutex // guards what follows
	file    *os.File
	end     int64 // of the last whole frame
	records uint64
	broken  error // a failed write: what is on disk is no longer known
	closed  bool
}

// OpenFileLog opens the log of a field with this seed, or makes an empty one.
// It fails with ErrLocked if the log is open already.
func OpenFileLog(path string, seed uint64) (*FileLog, error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", path, err)
	}
	l := &FileLog{path: path, seed: seed, lock: lock}
	if err := l.open(); err != nil {
		if l.file != nil {
			l.file.Close()
		}
		lock.Close()
		return nil, fmt.Errorf("open log %s: %w", path, err)
	}
	return l, nil
}

func (l *FileLog) open() error {
	file, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return l.Replace(func(func(Record, error) bool) {})
	}
	if err != nil {
		return err
	}
	l.file = file
	return l.recover()
}

func logStart(seed uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(logMagic), seed)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// recover checks the whole file and cuts off an unfinished last frame.
func (l *FileLog) recover() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	// A log is made under another name and renamed when it is whole, so that
	// even the start of a new one is never torn.
	start := make([]byte, logHeader)
	if _, err := l.file.ReadAt(start, 0); err != nil || !bytes.Equal(start[:16], logStart(l.seed)[:16]) || !bytes.Equal(start, logStart(l.seed)) {
		return fmt.Errorf("it does not begin as the log of a field with seed %d: %w", l.seed, ErrLog)
	}
	l.end = logHeader
	for l.end < info.Size() {
		frame, err := readFrame(l.file, l.end, info.Size())
		if errors.Is(err, errTorn) {
			if err := l.file.Truncate(l.end); err != nil {
				return err
			}
			return l.file.Sync()
		}
		if err != nil {
			return err
		}
		l.end += int64(frameHead + len(frame))
		l.records += uint64(len(frame) / recordSize)
	}
	return nil
}

// errTorn is what a crash in the middle of an Append leaves.
var errTorn = errors.New("torn")

// readFrame returns the bytes of the records of the frame at an offset of a
// file of the given size.
func readFrame(file io.ReaderAt, at, size int64) ([]byte, error) {
	head := make([]byte, min(frameHead, size-at))
	if _, err := file.ReadAt(head, at); err != nil {
		return nil, err
	}
	if len(head) < frameHead {
		return nil, errTorn
	}
	count := binary.LittleEndian.Uint32(head)
	if count != ^binary.LittleEndian.Uint32(head[4:]) || count < 1 || count > maxRecords {
		// A file can have its new length before its new bytes.
		if rest, err := io.ReadAll(io.NewSectionReader(file, at, min(size-at, frameHead+maxRecords*recordSize+1))); err != nil {
			return nil, err
		} else if len(rest) <= frameHead+maxRecords*recordSize && zeros(rest[:min(len(rest), frameHead)]) && zeros(rest) {
			return nil, errTorn
		}
		return nil, fmt.Errorf("the frame at %d has no length: %w", at, ErrLog)
	}
	length := int64(count) * recordSize
	if length > size-at-frameHead {
		return nil, errTorn
	}
	records := make([]byte, length)
	if _, err := file.ReadAt(records, at+frameHead); err != nil {
		return nil, err
	}
	if xxh3.HashSeed(records, uint64(at)) == binary.LittleEndian.Uint64(head[8:]) {
		return records, nil
	}
	// The last frame may be torn in another way: whole sectors that were never
	// written. With other bytes, or not the last one, it is damaged.
	if at+frameHead+length == size && missesSector(records, at+frameHead) {
		return nil, errTorn
	}
	return nil, fmt.Errorf("the checksum of the frame at %d is wrong: %w", at, ErrLog)
}

// missesSector reports whether a sector of bytes that begin at an offset of the
// file is all zeros. Shorter parts at both ends count from 16 bytes on.
func missesSector(b []byte, at int64) bool {
	for len(b) > 0 {
		n := min(int64(len(b)), sector-at%sector)
		if n >= 16 && zeros(b[:n]) {
			return true
		}
		b, at = b[n:], at+n
	}
	return false
}

func appendFrame(b []byte, at int64, records []Record) []byte {
	begin, order := len(b), binary.LittleEndian
	b = order.AppendUint32(b, uint32(len(records)))
	b = order.AppendUint32(b, ^uint32(len(records)))
	b = append(b, make([]byte, 8)...)
	for _, r := range records {
		b = append(b, byte(r.Op))
		b = order.AppendUint64(b, r.Key[0])
		b = order.AppendUint64(b, r.Key[1])
		b = order.AppendUint64(b, r.Value)
	}
	order.PutUint64(b[begin+8:], xxh3.HashSeed(b[begin+frameHead:], uint64(at)))
	return b
}

// Append writes the records and waits until they are on disk. After an error
// of the disk the log takes no more: what it holds is known when it is opened anew.
func (l *FileLog) Append(records []Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fmt.Errorf("append to log %s: %w", l.path, os.ErrClosed)
	case l.broken != nil:
		return fmt.Errorf("append to log %s after an earlier error: %w", l.path, l.broken)
	}
	at, count := l.end, uint64(len(records))
	var b []byte
	for len(records) > 0 {
		n := min(len(records), maxRecords)
		b = appendFrame(b, at+int64(len(b)), records[:n])
		records = records[n:]
	}
	if len(b) == 0 {
		return nil
	}
	_, err := l.file.WriteAt(b, at)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.broken = err
		return fmt.Errorf("append to a log: %w", err)
	}
	l.end += int64(len(b))
	l.records += count
	return nil
}

// Len returns the number of records.
func (l *FileLog) Len() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records
}

// Records yields the records that were appended so far, from number from on.
func (l *FileLog) Records(from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		file, end, err := l.reader()
		if err != nil {
			yield(Record{}, fmt.Errorf("read log %s: %w", l.path, err))
			return
		}
		defer file.Close()
		for at := int64(logHeader); at < end; {
			frame, err := readFrame(file, at, end)
			if errors.Is(err, errTorn) {
				err = fmt.Errorf("the frame at %d was whole before: %w", at, ErrLog)
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read log %s: %w", l.path, err))
				return
			}
			at += int64(frameHead + len(frame))
			skip := min(from, uint64(len(frame)/recordSize))
			from -= skip
			for frame = frame[skip*recordSize:]; len(frame) > 0; frame = frame[recordSize:] {
				order := binary.LittleEndian
				r := Record{Op(frame[0]), [2]uint64{order.Uint64(frame[1:]), order.Uint64(frame[9:])}, order.Uint64(frame[17:])}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// reader opens the file anew, as Replace may close the other one meanwhile, and
// returns where its whole frames end.
func (l *FileLog) reader() (*os.File, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, 0, os.ErrClosed
	}
	file, err := os.Open(l.path)
	return file, l.end, err
}

// Replace writes a new file beside the old one and gives it the old one's name.
func (l *FileLog) Replace(records iter.Seq2[Record, error]) error {
	file, err := os.CreateTemp(filepath.Dir(l.path), filepath.Base(l.path)+".*")
	if err != nil {
		return fmt.Errorf("replace a log: %w", err)
	}
	end, count, err := writeLog(file, l.seed, records)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.closed {
		err = os.ErrClosed
	}
	if err == nil {
		err = os.Rename(file.Name(), l.path)
	}
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return fmt.Errorf("replace a log: %w", err)
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.end, l.records, l.broken = file, end, count, nil
	if err := syncFolder(filepath.Dir(l.path)); err != nil {
		l.broken = err
		return fmt.Errorf("replace a log: %w", err)
	}
	return nil
}

// writeLog writes a whole log and syncs it.
func writeLog(file *os.File, seed uint64, records iter.Seq2[Record, error]) (end int64, count uint64, err error) {
	b, frame := logStart(seed), make([]Record, 0, maxRecords)
	flush := func() {
		if err == nil && len(frame) > 0 {
			b = appendFrame(b, end+int64(len(b)), frame)
			count += uint64(len(frame))
			frame = frame[:0]
		}
		if err == nil {
			_, err = file.Write(b)
			end += int64(len(b))
			b = b[:0]
		}
	}
	for r, readErr := range records {
		if readErr != nil {
			return 0, 0, readErr
		}
		if frame = append(frame, r); len(frame) == maxRecords {
			flush()
		}
		if err != nil {
			break
		}
	}
	flush()
	if err == nil {
		err = file.Sync()
	}
	return end, count, err
}

// Close closes the file, for others to open.
func (l *FileLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(l.file.Close(), l.lock.Close())
}
