package durable

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// leastFiles is how many files must be left to make: a database makes dozens at a time.
const leastFiles = 64

// Free is the room that the file system of dir has for this user, in bytes. It is none
// where the file system can make no more files, though there is room for their content.
// It has as many files as it has room for, where it does not count them.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	if s.Files > 0 && s.Ffree < leastFiles {
		return 0, nil
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // a block size has 32 bits on some processors
}

// Occupied is how many bytes of the disk a file takes; it may have holes.
func Occupied(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return 0
}

// spareFiles must be free for a write. Of those that it and the work in the background may
// open at a time, they are at least the ones that a database cannot do without.
const spareFiles = 4

// Writable reports why no file can be made in dir. It makes none: that takes ten times as
// long, and a commit asks each time.
func Writable(dir string) (err error) {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return err
	}
	var open []int
	for len(open) < spareFiles && err == nil {
		var fd int
		if fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			open = append(open, fd)
		}
	}
	for _, fd := range open {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

// Descriptors is how many files the process may have open. Go has raised its own limit to
// the most that the user may have.
func Descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 1024
	}
	return limit.Cur
}
