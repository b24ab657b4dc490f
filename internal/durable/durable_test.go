package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced in whole, also where a power cut has left one on the way, and
// only its owner can read it; of a failure the old file is what is left.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path+Suffix, []byte("longer than what comes, and left by a power cut"), FileMode); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "2nd", ""} {
		if err := WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != FileMode {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := os.Mkdir(path+Suffix, DirMode); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("lost")); err == nil {
		t.Error("written into a folder")
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != 0 {
		t.Errorf("after a failure: %q, %v", got, err)
	}
}

// A folder is taken as it is, whatever its name means in a pattern.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*")
	want := filepath.Join(dir, "1.mem")
	if err := errors.Join(os.Mkdir(dir, DirMode), os.WriteFile(want, nil, FileMode), os.WriteFile(want+"ento", nil, FileMode)); err != nil {
		t.Fatal(err)
	}
	if got, err := Files(dir, "*.mem"); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
}
