package rustfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/bfield/internal/infile"
)

// Save writes the files NAME.0.bfd, NAME.1.bfd and so on into a folder. It writes
// and syncs temporary ones, which then take their names, the first array last. So
// there is a field to open when it is whole, and not before. After a crash further
// arrays may be left over without a first.
//
// It replaces nothing. It fails with fs.ErrExist if there is a file with the name of
// an array, or with that of one more, which would be taken for one.
func (f *Field) Save(folder, name string) error {
	if err := f.save(folder, name); err != nil {
		return fmt.Errorf("save a field as %s: %w", name, err)
	}
	return nil
}

func (f *Field) save(folder, name string) (err error) {
	if name == "" || name != filepath.Base(name) {
		return fmt.Errorf("no name of a file: %w", fs.ErrInvalid)
	}
	path := func(i int) string { return filepath.Join(folder, fmt.Sprintf("%s.%d.bfd", name, i)) }
	for i := range len(f.arrays) + 1 {
		if _, err := os.Lstat(path(i)); err == nil {
			return fmt.Errorf("%s: %w", path(i), fs.ErrExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var made []string
	defer func() {
		if err != nil {
			for _, file := range made {
				os.Remove(file)
			}
		}
	}()
	for i := range f.arrays {
		temporary, err := write(folder, name, f.arrays[i].file)
		if temporary != "" {
			made = append(made, temporary)
		}
		if err != nil {
			return err
		}
	}
	for i := len(f.arrays) - 1; i >= 0; i-- {
		if err := os.Rename(made[i], path(i)); err != nil {
			return err
		}
		made[i] = path(i)
	}
	return infile.SyncFolder(folder)
}

// write returns the name of a new temporary file, also if writing it failed.
func write(folder, name string, data []byte) (string, error) {
	file, err := os.CreateTemp(folder, name+".*")
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return file.Name(), err
	}
	if err := file.Sync(); err != nil {
		return file.Name(), err
	}
	return file.Name(), file.Close()
}
