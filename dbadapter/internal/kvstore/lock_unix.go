//go:build unix

package kvstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/syncd-io/syncd/dbadapter"
)

// dirLock is a lock of our own on the folder, taken before the engine's: the files
// are looked at before the engine opens them. The kernel drops it with the process,
// however that ends.
type dirLock struct{ file *os.File }

func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w; stop the other program, or give this one another folder", dbadapter.ErrLocked)
		}
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	return &dirLock{f}, nil
}

func (l *dirLock) release() { l.file.Close() }
