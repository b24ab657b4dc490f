package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ours begins the import paths of this repository. In the module each version has
// another beginning in its place: versions/ and the version's name.
const ours = "github.com/syncd-io/syncd/"

// measured are the packages that each version consists of, and harness those that
// are taken as they are now.
var (
	measured = []string{"iblt/rateless", "internal/keyhash"}
	harness  = []string{"bench/versions/subject", "bench/versions/turns"}
)

// module is a Go module that has several versions of iblt/rateless side by side.
type module struct {
	dir string // where it is written
	top string // the repository
}

// write writes the module: the present version, and those of some commits.
func (m module) write(ctx context.Context, commits []string) error {
	if err := m.copy("now", append(measured, harness...)); err != nil {
		return err
	}
	subjects := []string{"now"}
	for _, c := range commits {
		full, err := output(ctx, m.top, "git", "rev-parse", "--verify", "--end-of-options", c+"^{commit}")
		if err != nil {
			return err
		}
		name := "v" + string(full[:7])
		archive, err := output(ctx, m.top, "git", append([]string{"archive", "--format=tar", strings.TrimSpace(string(full))}, measured...)...)
		if err != nil {
			return err
		}
		if err := m.unpack(name, archive); err != nil {
			return err
		}
		if err := m.copy(name, harness[:1]); err != nil {
			return err
		}
		subjects = append(subjects, name)
	}
	// The packages need what the repository needs, at the same versions.
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(m.top, name))
		if err != nil {
			return err
		}
		b = bytes.Replace(b, []byte("module "+strings.TrimSuffix(ours, "/")+"\n"), []byte("module versions\n"), 1)
		if err := m.put(name, b); err != nil {
			return err
		}
	}
	return m.put("main.go", program(subjects))
}

// program is the main package, which hands the subjects to package turns.
func program(subjects []string) []byte {
	var imports, list strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&imports, "\t%s \"versions/%s/%s\"\n", s, s, harness[0])
		fmt.Fprintf(&list, "\t\t{Name: %q, Replacing: %s.Replacing, Decoding: %s.Decoding, Building: %s.Building},\n",
			strings.TrimPrefix(s, "v"), s, s, s)
	}
	return fmt.Appendf(nil, `package main

import (
	"fmt"
	"os"

	"versions/now/%s"
%s)

func main() {
	err := turns.Run([]turns.Subject{
%s	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`, harness[1], imports.String(), list.String())
}

// copy copies packages of the folder, as they are, to a version.
func (m module) copy(version string, packages []string) error {
	for _, p := range packages {
		entries, err := os.ReadDir(filepath.Join(m.top, p))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !isSource(e.Name()) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(m.top, p, e.Name()))
			if err != nil {
				return err
			}
			if err := m.source(version, path.Join(p, e.Name()), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack writes the sources of a tar file to a version.
func (m module) unpack(version string, archive []byte) error {
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive of %s: %w", version, err)
		}
		if h.Typeflag != tar.TypeReg || !isSource(h.Name) || !filepath.IsLocal(h.Name) {
			continue
		}
		b, err := io.ReadAll(files)
		if err != nil {
			return fmt.Errorf("read the archive of %s: %w", version, err)
		}
		if err := m.source(version, h.Name, b); err != nil {
			return err
		}
	}
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// source writes a Go file of a version, which imports what is of the same version.
func (m module) source(version, name string, b []byte) error {
	b = bytes.ReplaceAll(b, []byte(`"`+ours), []byte(`"versions/`+version+`/`))
	return m.put(path.Join(version, name), b)
}

func (m module) put(name string, b []byte) error {
	to := filepath.Join(m.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
