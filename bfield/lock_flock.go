//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package bfield

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes a lock that the kernel drops with the process, however that
// ends. The file is empty and is never removed. Otherwise a program could lock
// it just before, another one make and lock it anew, and both would go on.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w; close it there, or give this field another file", ErrLocked)
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return file, nil
}
