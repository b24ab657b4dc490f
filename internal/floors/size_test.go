package floors

import (
	"os"
	"path"
	"strings"
	"testing"
)

// mostLines is how many lines of code a package may have that are neither blank nor comment.
// A larger one holds more than one idea, and a reader cannot learn a part of it alone.
const mostLines = 6000

func TestSizeOfPackages(t *testing.T) {
	lines := map[string]int{}
	err := goFiles(os.DirFS("../.."), func(name string, source []byte) error {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		for line := range strings.Lines(string(source)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[path.Dir(name)]++
			}
		}
		return nil
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
