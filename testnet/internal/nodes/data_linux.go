package nodes

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// seekData is SEEK_DATA of lseek(2).
const seekData = 3

// nextData is the place of the first byte, from an offset on, that is not in a
// hole, or a place beyond the end. A file system without holes returns the offset
// itself.
func nextData(f *os.File, at int64) (int64, error) {
	next, err := f.Seek(at, seekData)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return math.MaxInt64, nil
	case errors.Is(err, syscall.EINVAL):
		return at, nil
	}
	return next, err
}
