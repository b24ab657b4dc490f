//go:build linux

package powercut

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// stop halts all threads of a process and waits until they stand. A thread in
// the middle of a sync stands when the sync is done.
func stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		still, err := standing(pid)
		if still || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d did not stop within 30 s", pid)
		}
	}
}

// standing reports whether every thread of the process is stopped.
func standing(pid int) (bool, error) {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/stat"))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("process %d has no threads in /proc (%w)", pid, os.ErrProcessDone)
	}
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// The state follows the command's name, which stands in parentheses.
		after := bytes.LastIndexByte(stat, ')') + 2
		switch {
		case after >= len(stat):
			return false, fmt.Errorf("%s: not understood: %q", name, stat)
		case stat[after] == 'Z' || stat[after] == 'X':
			return false, fmt.Errorf("process %d: %w before its power was cut", pid, os.ErrProcessDone)
		case stat[after] != 'T':
			return false, nil
		}
	}
	return true, nil
}
