//go:build !unix

package bfield

import (
	"io"
	"os"
)

// mapFile reads the file where the system has no mmap that Go's syscall
// package knows.
func mapFile(file *os.File) (*mapping, error) {
	data, err := io.ReadAll(file)
	return &mapping{data}, err
}

func (m *mapping) unmap() error {
	m.data = nil
	return nil
}
