package badgerkv

import (
	"io/fs"
	"syscall"
)

// occupied is how many bytes of the disk a file takes; it may be sparse.
func occupied(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return 0
}
