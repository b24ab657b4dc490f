// Package damage tells of damage to a store: every error of it is
// dbadapter.ErrCorrupt, and names the place.
package damage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter"
)

// Corrupt names what is damaged. What to do about it the caller knows: whether the store
// can be repaired, and from what it can be restored.
func Corrupt(what, format string, args ...any) error {
	return fmt.Errorf("read %s: %w: %s", what, dbadapter.ErrCorrupt, fmt.Sprintf(format, args...))
}

// File names a damaged file.
func File(path, format string, args ...any) error {
	return Corrupt("the file "+filepath.Base(path), format, args...)
}

// Recovered makes an error of a panic that damage has led to.
func Recovered(path string, err *error) {
	if p := recover(); p != nil {
		*err = File(path, "%v", p)
	}
}

// Is tells an error that speaks of the files' content from one of the
// system. Badger does not name its errors.
func Is(err error) bool {
	var path *os.PathError
	var link *os.LinkError
	var system *os.SyscallError
	return !errors.As(err, &path) && !errors.As(err, &link) && !errors.As(err, &system) &&
		!errors.Is(err, dbadapter.ErrLocked)
}

// Quote shows a key in an error: at most 64 bytes of it.
func Quote(key []byte) string {
	const most = 64
	if len(key) <= most {
		return strconv.Quote(string(key))
	}
	return strconv.Quote(string(key[:most])) + "…"
}
