package floors

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// mostLines is how many lines of code a package may have that are neither blank nor comment.
// A larger one holds more than one idea, and a reader cannot learn a part of it alone.
const mostLines = 6000

func TestSizeOfPackages(t *testing.T) {
	tree, lines := os.DirFS("../.."), map[string]int{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && outside(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		for line := range strings.Lines(string(source)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[path.Dir(name)]++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines of code, more than %d: make packages of its ideas", pkg, n, mostLines)
		}
	}
}
