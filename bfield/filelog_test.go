package bfield

import (
	"bytes"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func logAt(t testing.TB, path string) *FileLog {
	t.Helper()
	l, err := OpenFileLog(path, 7)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func recordsOf(t testing.TB, l Log, from uint64) []Record {
	t.Helper()
	var all []Record
	for r, err := range l.Records(from) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func someRecords(from, n int) []Record {
	var all []Record
	for i := from; i < from+n; i++ {
		all = append(all, Record{Op(1 + i%3), [2]uint64{uint64(i) * goldenRatio, uint64(i)}, uint64(i * i)})
	}
	return all
}

// written is a log of frames of 1, 3 and 5000 records, and its bytes.
func written(t testing.TB) (path string, data []byte, ends []int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	l := logAt(t, path)
	at := 0
	ends = []int{logHeader}
	for _, n := range []int{1, 3, 5000} {
		if err := l.Append(someRecords(at, n)); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, maxRecords, 5000 - maxRecords} {
		ends = append(ends, ends[len(ends)-1]+frameHead+n*recordSize+1)
	}
	if ends[len(ends)-1] != len(data) {
		t.Fatalf("the log has %d bytes, frames end at %v", len(data), ends)
	}
	return path, data, ends
}

func TestFileLog(t *testing.T) {
	path, _, _ := written(t)
	l := logAt(t, path)
	want := someRecords(0, 5004)
	for _, from := range []uint64{0, 1, 2, 4, 5, 4099, 4100, 5003, 5004, 9999} {
		if got := recordsOf(t, l, from); !slices.Equal(got, want[min(from, 5004):]) {
			t.Errorf("from %d on there are %d records", from, len(got))
		}
	}
	for range l.Records(0) {
		break
	}
	if err := l.Append(nil); err != nil || l.Len() != 5004 {
		t.Errorf("appending nothing: %v, %d records", err, l.Len())
	}
	// Replace, while reading what is replaced.
	odd := func(yield func(Record, error) bool) {
		for r, err := range l.Records(0) {
			if (r.Key[1]%2 == 1 || err != nil) && !yield(r, err) {
				return
			}
		}
	}
	if err := l.Replace(odd); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(someRecords(1, 1)); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(r Record) bool { return r.Key[1]%2 == 0 })
	want = append(want, someRecords(1, 1)...)
	// A replacement that fails changes nothing and leaves nothing.
	failure := errors.New("no more")
	var broken iter.Seq2[Record, error] = func(yield func(Record, error) bool) {
		if yield(someRecords(9, 1)[0], nil) {
			yield(Record{}, failure)
		}
	}
	if err := l.Replace(broken); !errors.Is(err, failure) {
		t.Errorf("a failing replacement: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 2 { // the log and its lock
		t.Errorf("beside the log there is %v, %v", left, err)
	}
	l.Close()
	if err := l.Append(want[:1]); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("appending to a closed log: %v", err)
	}
	if err := l.Replace(odd); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("replacing a closed log: %v", err)
	}
	for _, err := range l.Records(0) {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("reading a closed log: %v", err)
		}
	}
	l = logAt(t, path)
	if got := recordsOf(t, l, 0); !slices.Equal(got, want) || l.Len() != uint64(len(want)) {
		t.Errorf("after replacing and opening anew, %d records, want %d", len(got), len(want))
	}
	l.Close()
	if _, err := OpenFileLog(path, 8); !errors.Is(err, ErrLog) {
		t.Errorf("opening the log of another seed: %v", err)
	}
	if _, err := OpenFileLog(filepath.Join(path, "x"), 7); err == nil {
		t.Error("opened a log below a file")
	}
}

// TestTornTail cuts the log at each byte near the ends of frames and at some
// between: the whole frames before stay, and the log goes on from there.
func TestTornTail(t *testing.T) {
	path, data, ends := written(t)
	for cut := logHeader; cut < len(data); cut++ {
		near := slices.ContainsFunc(ends, func(end int) bool { return cut >= end-2 && cut <= end+frameHead+2 })
		if !near && cut%997 != 0 {
			continue
		}
		whole := 0
		for i, n := range []int{1, 3, maxRecords, 5000 - maxRecords} {
			if cut >= ends[i+1] {
				whole += n
			}
		}
		for _, tail := range [][]byte{nil, make([]byte, min(len(data)-cut, 600))} {
			if tail != nil && !slices.Contains(ends, cut) {
				continue // zeros within a frame: see TestUnwrittenSectors
			}
			if err := os.WriteFile(path, append(bytes.Clone(data[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := OpenFileLog(path, 7)
			if err != nil {
				t.Fatalf("cut at %d, %d zeros behind: %v", cut, len(tail), err)
			}
			if err := l.Append(someRecords(whole, 2)); err != nil {
				t.Fatal(err)
			}
			l.Close()
			l = logAt(t, path)
			if got := recordsOf(t, l, 0); !slices.Equal(got, someRecords(0, whole+2)) {
				t.Fatalf("cut at %d: %d records, want %d", cut, len(got), whole+2)
			}
			l.Close()
		}
	}
}

// TestUnwrittenSectors: the last Append has its length, but a sector of one of its
// frames was never written. The frames before that one stay.
func TestUnwrittenSectors(t *testing.T) {
	path, data, ends := written(t)
	for frame, left := range map[int]uint64{3: 4, 4: 4 + maxRecords} {
		b := bytes.Clone(data)
		at := (ends[frame-1]/sector + 2) * sector
		clear(b[at : at+sector])
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenFileLog(path, 7)
		if err != nil || l.Len() != left {
			t.Fatalf("frame %d without a sector: %v", frame, err)
		}
		l.Close()
	}
}

// TestDamagedLog flips bits: each is refused, also in the last frame, and also
// where they change a frame's length.
func TestDamagedLog(t *testing.T) {
	path, data, ends := written(t)
	for at := range data {
		near := slices.ContainsFunc(ends, func(end int) bool { return at >= end-2 && at <= end+frameHead+2 })
		if !near && at%4999 != 0 {
			continue
		}
		b := bytes.Clone(data)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := OpenFileLog(path, 7); !errors.Is(err, ErrLog) {
			t.Errorf("a flipped bit in byte %d of %d: %d records, %v", at, len(b), l.Len(), err)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, b) {
			t.Fatalf("byte %d: a damaged log was written to", at)
		}
	}
	// A frame at another's place.
	b := append(bytes.Clone(data[:ends[1]]), data[ends[2]:]...)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFileLog(path, 7); !errors.Is(err, ErrLog) {
		t.Errorf("a frame cut out of the middle: %v", err)
	}
	// Damage after it was opened is found by reading.
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l := logAt(t, path)
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, last = range l.Records(0) {
		continue
	}
	if !errors.Is(last, ErrLog) {
		t.Errorf("damage under an open log: %v", last)
	}
}

// TestFailedAppend: a write or a sync that fails leaves a log that takes no more. When it is
// opened anew, what was written before is not there, as it may not be on disk, and can be
// appended again.
func TestFailedAppend(t *testing.T) {
	for name, breaks := range map[string]func(l *FileLog){
		"a write": func(l *FileLog) { l.file.Close() }, // any error will do
		"a sync":  func(l *FileLog) { l.sync = func(*os.File) error { return errors.New("a bad sector") } },
	} {
		path := filepath.Join(t.TempDir(), "log")
		l := logAt(t, path)
		if err := l.Append(someRecords(0, 3)); err != nil {
			t.Fatal(err)
		}
		breaks(l)
		for range 2 {
			if err := l.Append(someRecords(3, 5000)); err == nil || l.Len() != 3 {
				t.Fatalf("%s that fails: %v, %d records", name, err, l.Len())
			}
		}
		l.Close()
		l = logAt(t, path)
		if got := recordsOf(t, l, 0); !slices.Equal(got, someRecords(0, 3)) {
			t.Errorf("%s that fails: %d records after opening anew", name, len(got))
		}
		if err := l.Append(someRecords(3, 1)); err != nil {
			t.Fatal(err)
		}
		if got := recordsOf(t, l, 0); !slices.Equal(got, someRecords(0, 4)) {
			t.Errorf("%s that fails: %d records after the next Append", name, len(got))
		}
	}
}

// FuzzFileLog: no bytes panic. What is accepted reads as many records as it
// says, and reads the same when it is opened again.
func FuzzFileLog(f *testing.F) {
	_, data, ends := written(f)
	f.Add(data[:ends[2]])
	f.Add(data[:ends[2]+30])
	f.Add(append(bytes.Clone(data[:ends[1]]), make([]byte, 100)...))
	path := filepath.Join(f.TempDir(), "log")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= logHeader {
			copy(data, logStart(7))
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenFileLog(path, 7)
		if err != nil {
			return
		}
		got := recordsOf(t, l, 0)
		l.Close()
		if uint64(len(got)) != l.Len() || !slices.Equal(got, recordsOf(t, logAt(t, path), 0)) {
			t.Errorf("%d records of %d", len(got), l.Len())
		}
	})
}

// TestLogVersion: the log of another version is refused by an error that names both, even
// if its header is shorter.
func TestLogVersion(t *testing.T) {
	for _, size := range []int{len(logMagic), logHeader, logHeader + 100} {
		path := filepath.Join(t.TempDir(), "log")
		data := make([]byte, size)
		copy(data, logMagic)
		data[len(logMagic)-1] = 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenFileLog(path, 7)
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "log of version 1, where version 2 is read") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
