//go:build linux

package bfield

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/child"
	"github.com/syncd-io/syncd/internal/powercut"
)

// TestPowerCut does one thing after another to a log, each in a process of its
// own, and cuts the power of the disk as soon as it is done: it must have lasted.
// Where syncs do nothing it must not have, or the cut is no cut.
func TestPowerCut(t *testing.T) {
	if what := os.Getenv("BFIELD_POWERCUT"); what != "" {
		doUntilCut(t, strings.Fields(what))
		return
	}
	disk := powercut.New(t, 16<<20)
	path := filepath.Join(disk.Dir(), "log")
	both := slices.Concat(someRecords(0, 100), someRecords(0, 100))
	for _, c := range []struct {
		do     string
		synced bool
		killed bool     // the process alone: the disk keeps its power
		want   []Record // nil for no log
	}{
		{"open", false, false, nil},
		{"open", true, false, []Record{}},
		{"append", false, false, []Record{}},
		{"append", true, false, both[:100]},
		{"append", true, false, both},
		{"replace", false, false, both},
		{"replace", true, false, both[:1]},
		{"append", true, false, append(both[:1:1], both[:100]...)},
		// What the next process reads, since the system still has it, lasts.
		{"empty", true, false, []Record{}},
		{"append", false, true, nil},
		{"open", true, false, both[:100]},
		{"replace", false, true, nil},
		{"open", true, false, both[:1]},
	} {
		cutAfter(t, disk, c.do, path, c.synced, c.killed)
		if c.killed {
			continue
		}
		name := fmt.Sprintf("%s, synced = %t", c.do, c.synced)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			if c.want != nil {
				t.Fatalf("%s: the log is not there", name)
			}
			continue
		}
		l, err := OpenFileLog(path, 7)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := recordsOf(t, l, 0)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if c.want == nil || !slices.Equal(got, c.want) {
			t.Fatalf("%s: the log holds %d records, want %d", name, len(got), len(c.want))
		}
	}
}

// cutAfter starts the process, waits until it is done, and cuts the power, or kills it.
func cutAfter(t *testing.T, disk *powercut.Disk, do, path string, synced, killed bool) {
	t.Helper()
	environment := []string{fmt.Sprintf("BFIELD_POWERCUT=%s %s", do, path)}
	if !synced {
		environment = append(environment, "BFIELD_UNSYNCED=yes")
	}
	writer := child.Start(t, "TestPowerCut", environment...)
	writer.Expect("done")
	if killed {
		writer.Kill()
		return
	}
	err := disk.Cut(writer.Pid())
	writer.Kill()
	if err == nil {
		err = disk.Restore()
	}
	if err != nil {
		t.Fatalf("%s: %v", do, err)
	}
}

// doUntilCut is the process; it ends by being killed.
func doUntilCut(t *testing.T, what []string) {
	if os.Getenv("BFIELD_UNSYNCED") != "" {
		if err := os.Unsetenv("BFIELD_UNSYNCED"); err != nil {
			t.Fatal(err)
		}
		t.Fatal(powercut.Unsynced(os.Args[0], os.Args[1:]))
	}
	l, err := OpenFileLog(what[1], 7)
	if err != nil {
		t.Fatal(err)
	}
	switch what[0] {
	case "append":
		err = l.Append(someRecords(0, 100))
	case "empty":
		err = l.Replace(func(func(Record, error) bool) {})
	case "replace":
		err = l.Replace(func(yield func(Record, error) bool) { yield(someRecords(0, 1)[0], nil) })
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("done")
	child.Hold()
}
