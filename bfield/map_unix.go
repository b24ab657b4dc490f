//go:build unix

package bfield

import (
	"os"
	"syscall"
)

// mapFile maps a file by syscall.Mmap. golang.org/x/exp/mmap would hide the
// bytes behind ReadAt, a copy for each window, where a look-up needs a slice.
func mapFile(file *os.File) (*mapping, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if size := info.Size(); size > 0 && int64(int(size)) == size {
		data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			return nil, os.NewSyscallError("mmap", err)
		}
		return &mapping{data}, nil
	}
	return &mapping{}, nil // parse says what is wrong with it
}

func (m *mapping) unmap() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return os.NewSyscallError("munmap", syscall.Munmap(data))
}
