package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
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
	holder := child.Start(t, t.Name(), "SYNCD_TEST_HOLD="+dir)
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

// TestFormat shows that a store of another format is refused as one, and one whose stamp is
// damaged, wherever that is, as damaged.
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
	engine, err := kvstore.EngineOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	of := func(format int) []byte { return kvstore.Stamp(engine, format) }
	older := func(format int) string {
		return fmt.Sprintf("written by format %d, this program reads format %d; export it", format, kvstore.Format)
	}
	type stamped struct {
		stamp []byte
		want  error
		says  string
	}
	tests := []stamped{
		{of(kvstore.Format + 1), dbadapter.ErrFormat, fmt.Sprintf("written by format %d, this program reads format %d; use a newer program", kvstore.Format+1, kvstore.Format)},
		{of(kvstore.Format - 1), dbadapter.ErrFormat, older(kvstore.Format - 1)},
		{of(0), dbadapter.ErrFormat, fmt.Sprintf("this program reads format %d", kvstore.Format)},
		// No program has written these: the checksum is lost, or the number is another one.
		{kvstore.PlainStamp(engine, kvstore.Format), dbadapter.ErrCorrupt, "the file FORMAT"},
		{kvstore.PlainStamp(engine, 0), dbadapter.ErrCorrupt, "the file FORMAT"},
		{nil, dbadapter.ErrCorrupt, "the file FORMAT"},
		{[]byte("something else"), dbadapter.ErrCorrupt, "the file FORMAT"},
	}
	for format := 1; format < 8; format++ { // as the programs of these wrote them
		stamp := fmt.Appendf(nil, "syncd store over %s, disk format %d\n", engine, format)
		tests = append(tests, stamped{stamp, dbadapter.ErrFormat, older(format)})
	}
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 1 << (i % 8)
		tests = append(tests, stamped{flipped, dbadapter.ErrCorrupt, "the file FORMAT"}, stamped{good[:i], dbadapter.ErrCorrupt, "the file FORMAT"})
	}
	for _, test := range tests {
		if err := os.WriteFile(stamp, test.stamp, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := h.Open(dir, Options{})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("stamp %q gives %v, want %v with %q", test.stamp, err, test.want, test.says)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Open(file, Options{}); err == nil || errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a file as folder gives %v", err)
	}
}
