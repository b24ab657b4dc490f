package bfield

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Save writes the field to a file: to a temporary one beside it first, which is
// synced and then takes its name. After a crash there is the old file or the
// new one.
func (f *Field) Save(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save a field: %w", err)
	}
	if err := f.write(file); err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("save a field: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("save a field: %w", err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("save a field: %w", err)
	}
	return nil
}

// write writes the field, array by array, and closes the file.
func (f *Field) write(file *os.File) error {
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	// Errors of a bufio.Writer stay until Flush.
	w.Write(f.header()) //nolint:errcheck // see above
	var rest [alignment]byte
	for i := range f.levels {
		b := f.levels[i].bytes
		w.Write(b)                                             //nolint:errcheck // see above
		w.Write(rest[:aligned(uint64(len(b)))-uint64(len(b))]) //nolint:errcheck // see above
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// Open returns the field saved in a file, sealed, and reads all of it into memory:
// what is done to the file afterwards changes nothing. FieldOf is for bytes that are
// mapped into memory.
//
// It fails with ErrFormat if the file holds anything but a whole field.
func Open(path string) (*Field, error) {
	f, err := readField(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func readField(path string) (*Field, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Another file, which may be large, is not read.
	start := make([]byte, len(magic))
	if n, err := io.ReadFull(file, start); err != nil || string(start) != magic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		return FieldOf(start[:n])
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return FieldOf(data)
}
