package bench

import (
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
