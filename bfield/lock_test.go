//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package bfield

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/internal/child"
)

// TestLogLock: while another process has the log, it can neither be opened nor
// made; when that process is killed, it can, once. Replacing it, and failing to
// open it, change nothing about that.
func TestLogLock(t *testing.T) {
	if path := os.Getenv("BFIELD_HOLD_LOG"); path != "" {
		l := logAt(t, path)
		if err := l.Replace(l.Records(0)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("open")
		child.Hold()
		return
	}
	path := filepath.Join(t.TempDir(), "log")
	holder := child.Start(t, "TestLogLock", "BFIELD_HOLD_LOG="+path)
	holder.Expect("open")
	_, locked := OpenFileLog(path, 7)
	holder.Kill()
	if !errors.Is(locked, ErrLocked) {
		t.Errorf("a log that another process has open gives %v, want ErrLocked", locked)
	}
	if _, err := OpenFileLog(path, 8); !errors.Is(err, ErrLog) {
		t.Errorf("the log of another seed gives %v, want ErrLog", err)
	}
	l := logAt(t, path)
	if _, err := OpenFileLog(path, 7); !errors.Is(err, ErrLocked) {
		t.Errorf("a log that this process has open gives %v, want ErrLocked", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	logAt(t, path)
}
