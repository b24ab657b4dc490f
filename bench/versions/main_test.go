package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun measures the last commit beside the folder: both compile, side by side.
func TestRun(t *testing.T) {
	if _, err := output(t.Context(), ".", "git", "rev-parse", "HEAD"); err != nil {
		t.Skip("no history:", err)
	}
	if err := run(t.Context(), []string{"HEAD"}, "-only", "^replacement, M = 16384$", "-effort", "0.001"); err != nil {
		t.Fatal(err)
	}
}

// TestSource: a version imports what is of the same version, and nothing of the folder.
func TestSource(t *testing.T) {
	m := module{dir: t.TempDir(), top: filepath.Join("..", "..")}
	if err := m.copy("old", append(measured, harness...)); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(m.dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(b), `"`+ours) {
			t.Errorf("%s imports the present version", name)
		}
		return err
	})
	if err != nil || files < 20 {
		t.Fatalf("%d files: %v", files, err)
	}
}
