package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter"
)

// Corrupt names what is damaged and what to do about it.
func Corrupt(what, format string, args ...any) error {
	return fmt.Errorf("read %s: %w: %s; restore the folder from a copy, or empty it and sync again from a peer",
		what, dbadapter.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Damaged names a damaged file.
func Damaged(path, format string, args ...any) error {
	return Corrupt("the file "+filepath.Base(path), format, args...)
}

// Recovered makes an error of a panic that damage has led to.
func Recovered(path string, err *error) {
	if p := recover(); p != nil {
		*err = Damaged(path, "%v", p)
	}
}

// IsDamage tells an error that speaks of the files' content from one of the
// system. Badger does not name its errors.
func IsDamage(err error) bool {
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
