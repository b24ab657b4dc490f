//go:build unix

package cli

import "syscall"

// maxFiles is how many descriptors the process may have. Go has raised its own limit to
// the most that the user may have.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1024
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
