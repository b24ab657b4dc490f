package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// The model runs, calls no key nowhere that is there, and refuses what makes none.
func TestModel(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-built", "20000", "-shards", "16", "-nodes", "40"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"0 of 20000", "time to re-replicate"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
	for _, args := range [][]string{{"-nodes", "1"}, {"-built", "0"}, {"-keys", "5"}, {"-shards", "7", "-built", "10"}, {"x"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
