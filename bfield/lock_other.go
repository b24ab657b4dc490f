//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package bfield

import "os"

// lockFile keeps nobody out where Go's syscall package has no flock.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
