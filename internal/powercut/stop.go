//go:build linux

package powercut

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// stop halts a child process and waits until all its threads stand: its parent is told
// only then. A thread in the middle of a sync stands when the sync is done.
func stop(pid int) error {
	err := syscall.Kill(pid, syscall.SIGSTOP)
	var status syscall.WaitStatus
	if err == nil {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	switch {
	case err != nil:
		return fmt.Errorf("stopping process %d: %w", pid, err)
	case !status.Stopped():
		return fmt.Errorf("process %d: %w before its power was cut", pid, os.ErrProcessDone)
	}
	return nil
}
