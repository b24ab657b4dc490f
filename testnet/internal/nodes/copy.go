package nodes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// copyTries bounds how often a copy is begun again because files appeared or went.
const copyTries = 10

// copyFiles copies a folder of plain files that a store has open, without writers.
// A compaction, which the store begins on its own, makes new files: if the list of
// files changes during the copy, copyFiles begins again.
func copyFiles(from, to string) error {
	for range copyTries {
		before, err := listing(from)
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil {
			return err
		}
		var failed error
		for name := range before {
			failed = errors.Join(failed, copyFile(filepath.Join(from, name), filepath.Join(to, name)))
		}
		after, err := listing(from)
		if err != nil {
			return err
		}
		if same(before, after) {
			return failed
		}
	}
	return fmt.Errorf("the files in %s do not come to rest", from)
}

func listing(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			sizes[e.Name()] = info.Size()
		}
	}
	return sizes, nil
}

func same(a, b map[string]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for name, size := range a {
		if other, ok := b[name]; !ok || other != size {
			return false
		}
	}
	return true
}

// copyFile copies a file with its holes: a new file of Badger is a gigabyte of
// hole.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	block, zero := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); at < info.Size(); {
		next, err := nextData(in, at)
		if err != nil || next >= info.Size() {
			return err
		}
		at = next
		k, err := in.ReadAt(block[:min(int64(len(block)), info.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if k == 0 {
			return nil
		}
		if !bytes.Equal(block[:k], zero[:k]) {
			if _, err := out.WriteAt(block[:k], at); err != nil {
				return err
			}
		}
		at += int64(k)
	}
	return nil
}
