package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-trials", "2", "-slots", "4096", "-plots", dir}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(args, out, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two runs of one seed differ")
	}
	for _, want := range []string{"| 2 | 4 | 0.98 | 0.98037 | 0.9", "| 4 | 4 | 0.99997 | 0.99997 | 0.99", "| 2 | 4 | 32 |"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("no %q in\n%s", want, &first)
		}
	}
	if picture, err := os.ReadFile(filepath.Join(dir, "cuckoo-insertion.svg")); err != nil || !bytes.Contains(picture, []byte("</svg>")) {
		t.Errorf("no picture: %v", err)
	}
	for _, bad := range [][]string{{"-trials", "1"}, {"-slots", "0"}, {"-x"}, {"arg"}} {
		if err := run(bad, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}
