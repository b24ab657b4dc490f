//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package bfield

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
		_, _ = os.Stdin.Read(make([]byte, 1)) // hold it until killed
		return
	}
	path := filepath.Join(t.TempDir(), "log")
	child := exec.Command(os.Args[0], "-test.run=^TestLogLock$")
	child.Env = append(os.Environ(), "BFIELD_HOLD_LOG="+path)
	child.Stderr = os.Stderr
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, locked := OpenFileLog(path, 7)
	_ = child.Process.Kill()
	_ = child.Wait() // it was killed, and says so
	if line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
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
