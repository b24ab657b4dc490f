package bfield

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/seeded"
)

// page is what a file system writes whole or not at all.
const page = 4096

// randomRecords have values that fill all bytes, so that no end of a record is zeros.
func randomRecords(random *rand.Rand, n int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i] = Record{Op(1 + random.IntN(3)), [2]uint64{random.Uint64(), random.Uint64()}, random.Uint64()}
	}
	return records
}

// tear cuts the power: of the pages of the file behind what is surely on disk, the disk keeps
// any subset, of half of them or of nearly all: then whole frames are behind torn ones.
func tear(t *testing.T, random *rand.Rand, path string, synced []byte) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	left := append(bytes.Clone(synced), make([]byte, len(whole)-len(synced))...)
	one := []int{2, 50}[random.IntN(2)] // of so many pages is lost
	for at := len(synced) / page * page; at < len(whole); at += page {
		if random.IntN(one) > 0 {
			copy(left[at:min(at+page, len(left))], whole[at:])
		}
	}
	if err := os.WriteFile(path, left, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTornAppend cuts the power in the middle of an Append of several pages, of
// which the disk keeps any subset: what was acknowledged before is there, and of
// the Append its first records at most.
func TestTornAppend(t *testing.T) {
	random := seeded.New(t)
	for _, size := range []int{1, 100, 300, 4096, 8192, 20_000} {
		for range 20 / (1 + size/maxRecords) {
			path := filepath.Join(t.TempDir(), "log")
			l := logAt(t, path)
			before, torn := randomRecords(random, 1+random.IntN(500)), randomRecords(random, size)
			if err := errors.Join(l.Append(before[:1]), l.Append(before[1:])); err != nil {
				t.Fatal(err)
			}
			old, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(l.Append(torn), l.Close()); err != nil {
				t.Fatal(err)
			}
			tear(t, random, path, old)
			l, err = OpenFileLog(path, 7)
			if err != nil {
				t.Fatalf("%d records behind %d: %v", size, len(before), err)
			}
			got := recordsOf(t, l, 0)
			if want := slices.Concat(before, torn); len(got) < len(before) || !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("%d records behind %d: %d are left, or others", size, len(before), len(got))
			}
			if err := errors.Join(l.Append(before), l.Close()); err != nil {
				t.Fatal(err)
			}
			if again := recordsOf(t, logAt(t, path), 0); !slices.Equal(again, slices.Concat(got, before)) {
				t.Fatalf("%d records behind %d: %d after the next Append", size, len(before), len(again))
			}
		}
	}
}

// TestTornAppendAfterKill: a process is killed between the write and the sync of an
// Append, and the next one opens the log, which the system's memory still shows whole. The
// power is cut in the middle of its first Append: what was acknowledged is there.
func TestTornAppendAfterKill(t *testing.T) {
	random := seeded.New(t)
	for range 40 {
		path := filepath.Join(t.TempDir(), "log")
		l := logAt(t, path)
		before, killed, torn := randomRecords(random, 100), randomRecords(random, 1000), randomRecords(random, 10)
		if err := l.Append(before); err != nil {
			t.Fatal(err)
		}
		synced, err := os.ReadFile(path) // what is surely on disk
		if err != nil {
			t.Fatal(err)
		}
		l.sync = func(*os.File) error { return nil }
		if err := errors.Join(l.Append(killed), l.Close()); err != nil {
			t.Fatal(err)
		}
		cut := false
		l, err = openFileLog(path, 7, func(*os.File) error {
			if cut {
				return nil
			}
			synced, err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		cut = true
		if err := errors.Join(l.Append(torn), l.Close()); err != nil {
			t.Fatal(err)
		}
		tear(t, random, path, synced)
		got := recordsOf(t, logAt(t, path), 0)
		if want := slices.Concat(before, killed, torn); len(got) < len(before) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%d records are left, or others", len(got))
		}
	}
}

// TestLostSectors: sectors that read as zeros, in frames before which and behind
// which others were acknowledged, are damage: nothing is cut off.
func TestLostSectors(t *testing.T) {
	random := seeded.New(t)
	path := filepath.Join(t.TempDir(), "log")
	l := logAt(t, path)
	for _, n := range []int{300, 20_000, 1} {
		if err := l.Append(randomRecords(random, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		b := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			// Not the last sectors, where the last record is.
			at := random.IntN(len(b)/sector-1) * sector
			clear(b[at : at+sector])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFileLog(path, 7); !errors.Is(err, ErrLog) {
			t.Fatalf("a log without acknowledged sectors: %v", err)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, b) {
			t.Fatal("a damaged log was written to")
		}
	}
}

// TestKilledReplace: what a Replace leaves that was killed is gone when the log is
// opened again.
func TestKilledReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "log")
	names := func() (names []string) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	l := logAt(t, path)
	if err := l.Append(someRecords(0, 10)); err != nil {
		t.Fatal(err)
	}
	var during []string
	err := l.Replace(func(yield func(Record, error) bool) {
		during = names()
		yield(Record{}, os.ErrInvalid)
	})
	if !errors.Is(err, os.ErrInvalid) || len(during) != 3 {
		t.Fatalf("in the middle of a Replace there is %v: %v", during, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range during {
		if name == "log" || name == "log.lock" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(logMagic), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := recordsOf(t, logAt(t, path), 0); !slices.Equal(got, someRecords(0, 10)) {
		t.Errorf("%d records after a Replace that was killed", len(got))
	}
	if left := names(); len(left) != 2 {
		t.Errorf("after a Replace that was killed there is %v", left)
	}
}
