// Package durable writes the files of a node such that they outlive a power cut. A file
// is there in whole, or as it was, and a name that has been synced stays.
//
// Only the owner can read what it makes: files without a secret still tell which
// nodes talk with one another.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// The modes of folders and files.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// Suffix is that of a file on the way. A power cut may leave one; the next WriteFile
// of the same path replaces it.
const Suffix = ".tmp"

// WriteFile replaces a file by the parts, one after the other: what is written next to it is
// synced and renamed, and then the folder is synced. Of two calls for one path at a time
// either may fail.
func WriteFile(path string, parts ...[]byte) error {
	f, err := os.OpenFile(path+Suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, FileMode)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+Suffix, path)
	}
	if err != nil {
		os.Remove(path + Suffix)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Folder is a folder of small files.
type Folder string

// Read reads a file. It returns nil where the file does not exist.
func (f Folder) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write replaces a file by WriteFile.
func (f Folder) Write(name string, data []byte) error {
	return WriteFile(filepath.Join(string(f), name), data)
}

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// NoRoom reports whether the system has refused a write for lack of room, or of a quota's.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Files are the files in dir whose names match a pattern, by name. dir is taken as it is.
func Files(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, err
}

// Usage is how many bytes of the disk the files in dir take, and how many are free there. It
// fails where the folder is not there, and where the numbers are not known. Files may come
// and go meanwhile.
func Usage(dir string) (taken, free int64, err error) {
	if free, err = Free(dir); err != nil {
		return 0, 0, err
	}
	if free == math.MaxInt64 {
		return 0, 0, errors.ErrUnsupported
	}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it has just been removed
		}
		if info, err := e.Info(); err == nil {
			taken += Occupied(info)
		}
		return nil
	})
	return taken, free, err
}
