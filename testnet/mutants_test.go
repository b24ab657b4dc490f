package testnet

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMutantsApply checks that each patch applies to the code, and that the test
// it names exists. `make mutants` shows that the test finds the fault.
func TestMutantsApply(t *testing.T) {
	const root = ".."
	patches, err := filepath.Glob("mutants/*.patch")
	if err != nil || len(patches) < 20 {
		t.Fatalf("%d patches, %v", len(patches), err)
	}
	readme, err := os.ReadFile("mutants/README.md")
	if err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile(`(?m)^--- a/(.+)$`)
	caughtBy := regexp.MustCompile(`(?m)^Caught-by: (\./\S+) (Test\w+)( \S.*)?$`)
	for _, patch := range patches {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(patch)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(readme), "`"+name[:2]+"`") {
				t.Error("the table of mutants/README.md does not list it")
			}
			// In a folder of its own: git then looks at no repository.
			tree := t.TempDir()
			for _, file := range changed.FindAllStringSubmatch(string(text), -1) {
				code, err := os.ReadFile(filepath.Join(root, file[1]))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(file[1])), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(tree, file[1]), code, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			absolute, err := filepath.Abs(patch)
			if err != nil {
				t.Fatal(err)
			}
			git := exec.CommandContext(t.Context(), "git", "apply", absolute)
			git.Dir, git.Env = tree, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(tree))
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("it does not apply any more, make it anew: %v\n%s", err, out)
			}
			named := caughtBy.FindStringSubmatch(string(text))
			if named == nil {
				t.Fatal("it has no line Caught-by: PACKAGE TEST")
			}
			tests, err := filepath.Glob(filepath.Join(root, named[1], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range tests {
				code, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(code), "\nfunc "+named[2]+"(t *testing.T)") {
					return
				}
			}
			t.Errorf("package %s has no test %s", named[1], named[2])
		})
	}
}
