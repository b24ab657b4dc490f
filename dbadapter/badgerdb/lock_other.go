//go:build !unix

package badgerdb

import (
	"os"
	"strings"
)

// dirLock: here Badger's own lock alone keeps others out.
type dirLock struct{}

func lockDir(dir string) (*dirLock, error) { return &dirLock{}, os.MkdirAll(dir, 0o700) }

func (l *dirLock) release() {}

// isLockError recognizes Badger's refusal to share a folder, which has no name.
func isLockError(err error) bool {
	return strings.Contains(err.Error(), "Cannot create lock file") || strings.Contains(err.Error(), "Another process is using")
}
