// Package damage tells of damage to a store: every error of it is
// dbadapter.ErrCorrupt, and names the place.
package damage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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

// Recovered makes an error of a panic: one of the system's, or else of damage.
func Recovered(path string, err *error) {
	if p := recover(); p != nil {
		*err = Panicked(path, p)
	}
}

// Panicked is the error that a panic stands for.
func Panicked(path string, p any) error {
	if refusal := Refusal(p); refusal != nil {
		return fmt.Errorf("use %s: %w (%v)", filepath.Base(path), refusal, p)
	}
	return File(path, "%v", p)
}

// Is tells an error that speaks of the files' content from one of the
// system. Badger does not name its errors.
func Is(err error) bool {
	var path *os.PathError
	var link *os.LinkError
	var system *os.SyscallError
	return !errors.As(err, &path) && !errors.As(err, &link) && !errors.As(err, &system) &&
		!errors.Is(err, dbadapter.ErrLocked) && Refusal(err) == nil
}

// refusals are the errors with which a system refuses a file, whatever is in it. The text of
// ENFILE begins with that of EMFILE.
var refusals = []syscall.Errno{
	syscall.ENFILE, syscall.EMFILE, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ENOSPC,
	syscall.EDQUOT, syscall.ENOMEM, syscall.EISDIR, syscall.ENOTDIR,
}

// Refusal is the refusal of the system that an error, or what a panic carries, speaks of;
// nil if it speaks of none. Badger keeps no more of it than the text.
func Refusal(of any) error {
	text := fmt.Sprint(of)
	for _, errno := range refusals {
		if err, ok := of.(error); ok && errors.Is(err, errno) || strings.Contains(text, errno.Error()) {
			return errno
		}
	}
	return nil
}

// Quote shows a key in an error: at most 64 bytes of it.
func Quote(key []byte) string {
	const most = 64
	if len(key) <= most {
		return strconv.Quote(string(key))
	}
	return strconv.Quote(string(key[:most])) + "…"
}
