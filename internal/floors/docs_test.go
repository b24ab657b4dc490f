package floors

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What a document can name. Code is text between backticks, and each line that
// is indented as an example.
var (
	docLink   = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]+)?\)`)
	docCode   = regexp.MustCompile("`[^`]+`")
	docTest   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*\b`)
	docPath   = regexp.MustCompile(`(?:^|[\s'"(])(?:\./)?([a-z][\w-]*(?:/[\w.-]*\w)+)`)
	docTarget = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	docIdent  = regexp.MustCompile(`(?:^|[^\w.])([a-z]\w*)\.([A-Z]\w*)`)
)

// repository is what a document may name: files and folders, headings of documents, functions of tests,
// targets of the Makefile, and the words of each package, by its last element.
type repository struct {
	files, tests, targets map[string]bool
	words                 map[string]map[string]bool
}

var (
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	exported   = regexp.MustCompile(`\b[A-Z]\w*\b`)

	heading      = regexp.MustCompile(`(?m)^##* (.*)$`)
	notOfAnchors = regexp.MustCompile(`[^\pL\pN _-]`)
)

func readRepository(tree fs.FS) (*repository, error) {
	r := &repository{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	return r, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		r.files[name] = true
		if name != "Makefile" && path.Ext(name) != ".go" && path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if name == "Makefile" {
			for _, m := range makeTarget.FindAllSubmatch(text, -1) {
				r.targets[string(m[1])] = true
			}
			return nil
		}
		if path.Ext(name) == ".md" {
			for _, m := range heading.FindAllSubmatch(text, -1) {
				words := notOfAnchors.ReplaceAllString(strings.ToLower(string(m[1])), "")
				r.files[name+"#"+strings.ReplaceAll(words, " ", "-")] = true
			}
			return nil
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			r.tests[string(m[1])] = true
		}
		pkg := path.Base(path.Dir(name))
		if r.words[pkg] == nil {
			r.words[pkg] = map[string]bool{}
		}
		for _, w := range exported.FindAll(text, -1) {
			r.words[pkg][string(w)] = true
		}
		return nil
	})
}

// stale lists what a document names and the repository does not have.
func (r *repository) stale(name, text string) (problems []string) {
	miss := func(line int, what, named string) {
		problems = append(problems, fmt.Sprintf("%s:%d: there is no %s %s", name, line, what, named))
	}
	line := 0
	for l := range strings.Lines(text) {
		line++
		for _, m := range docLink.FindAllStringSubmatch(l, -1) {
			file := name
			if m[1] != "" {
				file = path.Join(path.Dir(name), m[1])
			}
			switch {
			case strings.Contains(m[1], "://"):
			case !r.files[file]:
				miss(line, "file", m[1])
			case m[2] != "" && !r.files[file+m[2]]:
				miss(line, "heading", m[1]+m[2])
			}
		}
		code := docCode.FindAllString(l, -1)
		if strings.HasPrefix(l, "    ") {
			code = append(code, l)
		}
		for _, c := range code {
			c = strings.Trim(c, "`\n")
			for _, t := range docTest.FindAllString(c, -1) {
				if !r.tests[t] && t != "FuzzName" { // FuzzName stands for any
					miss(line, "test", t)
				}
			}
			for _, m := range docPath.FindAllStringSubmatch(c, -1) {
				if top, _, _ := strings.Cut(m[1], "/"); r.files[top] && !r.files[m[1]] {
					miss(line, "file", m[1])
				}
			}
			for _, m := range docTarget.FindAllStringSubmatch(c, -1) {
				if !r.targets[m[1]] {
					miss(line, "target", m[1])
				}
			}
			for _, m := range docIdent.FindAllStringSubmatch(c, -1) {
				if words := r.words[m[1]]; words != nil && !words[m[2]] {
					miss(line, "identifier", m[1]+"."+m[2])
				}
			}
		}
	}
	return problems
}

// TestDocsNameWhatExists: the documents name only files, tests, targets of make
// and identifiers that exist. TestMutantsApply checks testnet/mutants.
func TestDocsNameWhatExists(t *testing.T) {
	r := theRepository(t)
	for name, text := range texts(t, "README.md", "docs/*.md", "docs/protocol/*.md", "docs/decisions/*.md", "docs/monitoring/*.md", "CHANGELOG.md", "testnet/scenarios/README.md") {
		for _, problem := range r.stale(name, text) {
			t.Error(problem)
		}
	}
}

func theRepository(t *testing.T) *repository {
	t.Helper()
	r, err := readRepository(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texts are the files of some patterns, each of which some file has.
func texts(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	tree, all := os.DirFS("../.."), map[string]string{}
	for _, pattern := range patterns {
		found, err := fs.Glob(tree, pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no file %s (%v)", pattern, err)
		}
		for _, name := range found {
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(text)
		}
	}
	return all
}

// TestGlossary: at most 60 terms, each in one sentence, and in use.
func TestGlossary(t *testing.T) {
	var uses strings.Builder
	for _, text := range texts(t, "README.md", "docs/[^G]*.md", "docs/protocol/*.md", "*/*.go", "internal/*/*.go", "reconcile/*/*.go") {
		uses.WriteString(strings.ToLower(text))
	}
	terms := 0
	_, table, _ := strings.Cut(texts(t, "docs/GLOSSARY.md")["docs/GLOSSARY.md"], "|---|---|---|\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 || strings.Contains(cells[1], ". ") {
			t.Errorf("not a term, one sentence and a source: %q", row)
			continue
		}
		for term := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
			if terms++; !strings.Contains(uses.String(), strings.ToLower(term)) {
				t.Errorf("nothing uses the term %q", term)
			}
		}
	}
	if terms == 0 || terms > 60 {
		t.Errorf("%d terms; at most 60 are wanted", terms)
	}
}

// unproved lists the rows of the table of promises which name no test that exists.
func (r *repository) unproved(text string) (problems []string) {
	_, table, _ := strings.Cut(text, "## Promises\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for l := range strings.Lines(table) {
		if !strings.HasPrefix(l, "| ") || strings.HasPrefix(l, "| against |") {
			continue
		}
		if !slices.ContainsFunc(docTest.FindAllString(strings.Join(docCode.FindAllString(l, -1), " "), -1), func(t string) bool { return r.tests[t] }) {
			problems = append(problems, fmt.Sprintf("no test shows this promise: %.60q", l))
		}
	}
	return problems
}

// TestPromisesAreShown: each row of the promises against adversaries names a test.
func TestPromisesAreShown(t *testing.T) {
	text := texts(t, "docs/THREATS.md")["docs/THREATS.md"]
	if !strings.Contains(text, "\n## Promises\n") {
		t.Fatal("no table of promises")
	}
	for _, problem := range theRepository(t).unproved(text) {
		t.Error(problem)
	}
}

// TestStaleNamesAreSeen: a document with one name of each kind that does not
// exist, beside one that does.
func TestStaleNamesAreSeen(t *testing.T) {
	r, err := readRepository(fstest.MapFS{
		"Makefile":       {Data: []byte("unit: tools\n")},
		"docs/a.md":      {Data: []byte("# A b, c\n")},
		"peer/a_test.go": {Data: []byte("package peer\nfunc TestHere(t *testing.T) { Limits() }\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := r.stale("docs/b.md", strings.Join([]string{
		"[a](a.md#a-b-c), [b](../gone.md), [far](https://example.com/x#y), [c](a.md#c)",
		"`TestHere`, `TestGone`, `peer.Limits`, `peer.Gone`, `http.Gone`",
		"    go test ./peer/a_test.go ./peer/gone",
		"    make unit; make gone",
		"TestGone in prose, and `other/path`, are no names",
	}, "\n"))
	want := []string{
		"docs/b.md:1: there is no file ../gone.md",
		"docs/b.md:1: there is no heading a.md#c",
		"docs/b.md:2: there is no test TestGone",
		"docs/b.md:2: there is no identifier peer.Gone",
		"docs/b.md:3: there is no file peer/gone",
		"docs/b.md:4: there is no target gone",
	}
	table := "## Promises\n\n| against | promise | by |\n|---|---|---|\n| a | b | `TestHere` |\n| c | d | `TestGone`, TestHere |\n\n| e | f | g |\n\n## Attacks\n| h | i |\n"
	if rows := r.unproved(table); len(rows) != 2 {
		t.Errorf("promises without a test: %q", rows)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
