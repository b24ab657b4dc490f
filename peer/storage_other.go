//go:build !linux

package peer

import (
	"errors"
	"io/fs"
)

// blocksOf is what a file takes on the disk, or the length of one with holes.
func blocksOf(info fs.FileInfo) int64 { return info.Size() }

// freeBytes is not known here.
func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
