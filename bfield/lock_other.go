//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package bfield

import "os"

// lockFile only opens the file: Go's syscall package has no flock here, so a second
// process is not kept out.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
