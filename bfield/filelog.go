package bfield

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/internal/durable"
)

// FileLog is a Log in a file that only grows. Append returns when the records are
// on disk. What a crash left of an Append that had not returned is kept up to its
// first gap, and cut off from there. Damage anywhere else is ErrLog.
//
// A log is open once at a time. A lock on a file next to it, with the ending
// .lock, keeps a second one out, of this process or another. That works on
// Linux, macOS and the BSDs; elsewhere the caller must see to it.
type FileLog struct {
	path string
	seed uint64
	lock *os.File             // the log's own file will not do: Replace changes it
	sync func(*os.File) error // (*os.File).Sync, but for tests

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
	return openFileLog(path, seed, (*os.File).Sync)
}

func openFileLog(path string, seed uint64, sync func(*os.File) error) (*FileLog, error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", path, err)
	}
	l := &FileLog{path: path, seed: seed, lock: lock, sync: sync}
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
	// Of a Replace that was killed. The lock is ours: no other program writes it.
	if err := os.Remove(l.path + durable.Suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return l.Replace(func(func(Record, error) bool) {})
	}
	if err != nil {
		return err
	}
	l.file = file
	if err := l.recover(); err != nil {
		return err
	}
	// What was read may be in memory only, if the process was killed before its sync. The
	// next Append would be taken for proof that it was on disk. The same goes for the
	// name that a Replace gave the file.
	if err := l.sync(file); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(l.path))
}

// recover checks the whole file and cuts off what is left of an unfinished Append.
func (l *FileLog) recover() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	// A log is made under another name and renamed when it is whole. So even the
	// start of a new one is never torn.
	start := make([]byte, logHeader)
	_, err = l.file.ReadAt(start, 0)
	if last := len(logMagic) - 1; string(start[:last]) == logMagic[:last] && start[last] != logMagic[last] {
		return fmt.Errorf("it is a log of version %d, where version %d is read: make it anew from what it was made of: %w", start[last], logMagic[last], ErrLog)
	}
	if err != nil || !bytes.Equal(start, logStart(l.seed)) {
		return fmt.Errorf("it does not begin as the log, of version %d, of a field with seed %d: %w", logMagic[7], l.seed, ErrLog)
	}
	l.end = logHeader
	for l.end < info.Size() {
		frame, err := readFrame(l.file, l.end, info.Size())
		if errors.Is(err, errFrame) {
			return l.cut(info.Size())
		}
		if err != nil {
			return err
		}
		l.end += frame.size()
		l.records += uint64(len(frame.records) / recordSize)
	}
	return nil
}

// cut cuts off what follows the last whole frame, if an unfinished Append left it.
func (l *FileLog) cut(size int64) error {
	damage, err := torn(l.file, l.end, size)
	if err != nil {
		return err
	}
	if damage != "" {
		return fmt.Errorf("%s; bring the log back from a copy: %w", damage, ErrLog)
	}
	return l.file.Truncate(l.end)
}

// Append writes the records and waits until they are on disk. After an error of the
// disk the log takes no more until it is opened anew. What was written of the records
// that failed is cut off. If the disk refuses that, too, the log may hold any first
// few of them, on disk or in the system's memory alone.
func (l *FileLog) Append(records []Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fmt.Errorf("append to log %s: %w", l.path, os.ErrClosed)
	case l.broken != nil:
		return fmt.Errorf("append to log %s after an earlier error: %w", l.path, l.broken)
	}
	for part := range slices.Chunk(records, maxFrames*maxRecords) {
		if err := l.append(part); err != nil {
			// After a sync that failed, Linux takes the pages for written. A process that
			// opens the log before the machine starts anew would read frames that are not
			// on disk. No later sync would write them. The caller gets the first error, not
			// that of cutting the file.
			_ = l.file.Truncate(l.end)
			l.broken = err
			return fmt.Errorf("append to a log: %w", err)
		}
	}
	return nil
}

// append writes the records as the frames of one Append and syncs them.
func (l *FileLog) append(records []Record) error {
	var b []byte
	i := 0
	for part := range slices.Chunk(records, maxRecords) {
		b = appendFrame(b, l.end+int64(len(b)), i, part)
		i++
	}
	if _, err := l.file.WriteAt(b, l.end); err != nil {
		return err
	}
	if err := l.sync(l.file); err != nil {
		return err
	}
	l.end += int64(len(b))
	l.records += uint64(len(records))
	return nil
}

// Seed returns the seed that the log was made for.
func (l *FileLog) Seed() uint64 { return l.seed }

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
			if errors.Is(err, errFrame) {
				err = fmt.Errorf("the frame at %d was whole before: %w", at, ErrLog)
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read log %s: %w", l.path, err))
				return
			}
			at += frame.size()
			b := frame.records
			skip := min(from, uint64(len(b)/recordSize))
			from -= skip
			for b = b[skip*recordSize:]; len(b) > 0; b = b[recordSize:] {
				order := binary.LittleEndian
				r := Record{Op(b[0]), [2]uint64{order.Uint64(b[1:]), order.Uint64(b[9:])}, order.Uint64(b[17:])}
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

// Replace writes a new file next to the old one, with the ending .tmp, and gives
// it the old one's name.
func (l *FileLog) Replace(records iter.Seq2[Record, error]) error {
	file, err := os.OpenFile(l.path+durable.Suffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
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
	if err := durable.SyncDir(filepath.Dir(l.path)); err != nil {
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
			b = appendFrame(b, end+int64(len(b)), 0, frame)
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
