package bfield

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
)

// mapping is a file in the memory's address space, read only.
type mapping struct{ data []byte }

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

// Open returns the field saved in a file, sealed. The arrays stay in the file,
// mapped read only where the system can: processes share them, and what is not
// asked for need not be in memory. Open reads all of it once, to verify the
// checksums. The file must not change while the field is open; Close it
// afterwards.
//
// It fails with ErrFormat if the file holds anything but a whole field.
func Open(path string) (*Field, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a field: %w", err)
	}
	defer file.Close()
	m, err := mapFile(file)
	if err != nil {
		return nil, fmt.Errorf("open a field: map %s: %w", path, err)
	}
	f, err := parse(m.data)
	if err != nil {
		m.unmap() //nolint:errcheck // the file is refused anyhow
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f.mapped = m
	return f, nil
}

// Close gives back the file of a field that Open returned. The field must not
// be used afterwards. For other fields it does nothing.
func (f *Field) Close() error {
	if f.mapped == nil {
		return nil
	}
	m := f.mapped
	f.mapped, f.levels = nil, nil
	if err := m.unmap(); err != nil {
		return fmt.Errorf("close a field: %w", err)
	}
	return nil
}
