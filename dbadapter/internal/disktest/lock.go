package disktest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/child"
)

// TestLock shows that one process at a time has a store, and that a lock outlives no
// process.
func TestLock(t *testing.T, h Harness) {
	if held := os.Getenv("SYNCD_TEST_HOLD"); held != "" {
		if _, err := h.Open(held, Options{}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("open")
		child.Hold()
		return
	}
	dir := t.TempDir()
	holder := child.Start(t, "TestLock", "SYNCD_TEST_HOLD="+dir)
	holder.Expect("open")
	if _, err := h.Open(dir, Options{}); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a folder that another process holds gives %v, want ErrLocked", err)
	}
	holder.Kill()
	s, err := h.Open(dir, Options{})
	if err != nil {
		t.Fatalf("after the other process was killed: %v", err)
	}
	defer s.Close()
	if _, err := h.Open(dir, Options{}); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a folder that this process holds gives %v, want ErrLocked", err)
	}
}

// TestFormat shows that a store of another format is refused.
func TestFormat(t *testing.T, h Harness) {
	dir := t.TempDir()
	s, err := h.Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	stamp := filepath.Join(dir, "FORMAT")
	good, err := os.ReadFile(stamp)
	if err != nil {
		t.Fatal(err)
	}
	of := func(format int) string {
		return strings.Replace(string(good), strconv.Itoa(h.Format), strconv.Itoa(format), 1)
	}
	reads := fmt.Sprintf("this program reads format %d", h.Format)
	for _, test := range []struct{ stamp, want string }{
		{of(h.Format + 1), fmt.Sprintf("written by format %d, this program reads format %d; use a newer program", h.Format+1, h.Format)},
		{of(h.Format - 1), fmt.Sprintf("written by format %d, this program reads format %d; export it", h.Format-1, h.Format)},
		{of(0), reads},
		{"", reads},
		{"something else", reads},
	} {
		if err := os.WriteFile(stamp, []byte(test.stamp), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := h.Open(dir, Options{})
		if !errors.Is(err, dbadapter.ErrFormat) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("stamp %q gives %v, want ErrFormat with %q", test.stamp, err, test.want)
		}
	}
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Open(dir, Options{}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a database without a stamp gives %v, want ErrFormat", err)
	}
	if err := os.WriteFile(stamp, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = h.Open(dir, Options{}); err != nil {
		t.Fatalf("with its stamp again: %v", err)
	}
	s.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Open(file, Options{}); err == nil || errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a file as folder gives %v", err)
	}
}
