package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Only the owner can read folders and files: those without a secret still tell
// which nodes talk with one another.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// writeFile replaces a file such that a power cut leaves the old or the new
// content: written beside it, synced, renamed, and the folder synced.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readPrivate reads a file that only its owner may read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no modes
		return nil, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it, and consider its content known",
			path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}
