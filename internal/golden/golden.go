// Package golden compares what a test makes with a file under testdata, to the
// byte:
//
//	golden.Compare(t, "testdata/golden.txt", text)
//
// After a change that is meant, `go test ./the/package -update` writes the files
// anew; read the difference before you commit it.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Compare fails the test at the first line in which got differs from the file.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("%s differs first in line %d, which is now\n%s", file, i+1, line)
		}
	}
	t.Fatalf("%s has more lines", file)
}
