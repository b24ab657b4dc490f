package node

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The package documentation names all files of the package, and each file that it
// names is there. A name without a folder is in the folder named last in its line.
func TestDocNamesFiles(t *testing.T) {
	text := must(os.ReadFile("doc.go"))
	named := map[string]bool{"internal/node/doc.go": true}
	word := regexp.MustCompile(`[a-z]+(/[a-z]+)+(\.go)?|[a-z]+\.go`)
	for line := range strings.Lines(string(text)) {
		folder := "internal/node"
		for _, name := range word.FindAllString(line, -1) {
			switch file := strings.HasSuffix(name, ".go"); {
			case !file:
				folder = name
				continue
			case strings.Contains(name, "/"):
				folder = path.Dir(name)
			default:
				name = path.Join(folder, name)
			}
			named[name] = true
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Errorf("doc.go names %s: %v", name, err)
			}
		}
	}
	files := must(filepath.Glob("*.go"))
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") && !named["internal/node/"+name] {
			t.Errorf("doc.go does not name %s", name)
		}
	}
}
