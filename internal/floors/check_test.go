package floors

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// fence keeps the imports that begin with one of these paths to the packages
// named in only.
type fence struct {
	imports, only []string
	why           string
}

// check reads the import clauses of all Go files in the tree and returns what
// breaks the table, a line each. It parses the files itself, within the test
// process: `go test` then knows that the result depends on them, and does not
// serve a stale one from its cache.
func check(tree fs.FS) (problems []string, packages int, err error) {
	seen := map[string]bool{}
	err = goFiles(tree, func(name string, source []byte) error {
		found, err := checkFile(name, source)
		problems = append(problems, found...)
		if pkg := path.Dir(name); !seen[pkg] {
			seen[pkg] = true
			problems = append(problems, checkName(pkg)...)
		}
		return err
	})
	return problems, len(seen), err
}

// goFiles reads the Go files of the module.
func goFiles(tree fs.FS, each func(name string, source []byte) error) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (outside(entry.Name()) || otherModule(tree, name)):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return each(name, source)
	})
}

// outside tells folders that `go build` does not look into either.
func outside(dir string) bool {
	return dir == "testdata" || dir == "vendor" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func otherModule(tree fs.FS, dir string) bool {
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

func checkName(pkg string) (problems []string) {
	if _, ok := floorOf(pkg); !ok {
		problems = append(problems, fmt.Sprintf("%s: no floor in internal/floors/table_test.go; give it one", pkg))
	}
	if slices.Contains(banned, path.Base(pkg)) {
		problems = append(problems, fmt.Sprintf("%s: the name says nothing of what is inside", pkg))
	}
	return problems
}

func checkFile(name string, source []byte) (problems []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	pkg, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	from, _ := floorOf(pkg)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if own, ok := ownPackage(imported); ok {
			to, known := floorOf(own)
			// A package's external tests (package x_test) import it.
			allowed := to < from || test && (to == from || upward[[2]string{pkg, own}] != "")
			if !known || !allowed {
				problems = append(problems, fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports point down only", name, from, own, to))
			}
		}
		if test {
			continue
		}
		for _, f := range fences {
			if f.covers(imported) && !f.allows(pkg) {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", name, imported, f.why))
			}
		}
	}
	return problems, nil
}

// ownPackage is the path of an import below the module's root.
func ownPackage(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func floorOf(pkg string) (int, bool) {
	for n, packages := range floors {
		if slices.Contains(packages, pkg) {
			return n, true
		}
	}
	return 0, false
}

// below reports whether the pattern "a/..." stands for pkg.
func below(pkg, pattern string) bool {
	prefix, ok := strings.CutSuffix(pattern, "...")
	return ok && strings.HasPrefix(pkg, prefix)
}

func (f fence) covers(imported string) bool {
	return slices.ContainsFunc(f.imports, func(p string) bool {
		// A part of the standard library is meant by its exact path: "net" is
		// not "net/url".
		return imported == p || strings.Contains(p, ".") && strings.HasPrefix(imported, p+"/")
	})
}

func (f fence) allows(pkg string) bool {
	return slices.ContainsFunc(f.only, func(p string) bool { return pkg == p || below(pkg, p) })
}
