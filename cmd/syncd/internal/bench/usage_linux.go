package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// used is what this process has used so far.
func used() Usage {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return Usage{}
	}
	const sector = 512
	return Usage{milliseconds(time.Duration(u.Utime.Nano() + u.Stime.Nano())), u.Majflt, u.Minflt, u.Inblock * sector}
}

const canForget = true

// forget takes the files of a folder, which no process has open, out of the kernel's
// cache (posix_fadvise, POSIX_FADV_DONTNEED).
func forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		// What was written must be on the disk before it can be forgotten.
		return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	})
}
