package main

import (
	"bytes"
	"strings"
	"testing"
)

// The decision not to build the method rests on this: no filter halves the bytes of a
// sync.
func TestFilterHalvesNothing(t *testing.T) {
	for _, value := range []int{0, 100} {
		r, err := measure(2000, 1000, value, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r.filter >= r.cells || r.filter*2 < min(r.cells, r.all) {
			t.Errorf("values of %d bytes: cells %d, all %d, filter %d", value, r.cells, r.all, r.filter)
		}
	}
}

func TestUsage(t *testing.T) {
	var out, log bytes.Buffer
	if err := run([]string{"-records", "10"}, &out, &log); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("run with 10 records: %v", err)
	}
}
