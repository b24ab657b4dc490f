package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMapping: the mapping is that of iblt/rateless, by its vectors.
func TestMapping(t *testing.T) {
	text, err := os.ReadFile("../../iblt/rateless/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := words{}
	found := regexp.MustCompile(`mapping \[(\w+) (\w+) (\w+) (\w+)\]`).FindSubmatch(text)
	if found == nil {
		t.Fatal("no words")
	}
	for i := range w.mapping {
		fmt.Sscanf(string(found[1+i]), "%x", &w.mapping[i])
	}
	lines := regexp.MustCompile(`(?m)^mapping (\w{12}): .* cells (.*)$`).FindAllSubmatch(text, -1)
	if len(lines) < 6 {
		t.Fatalf("%d mappings", len(lines))
	}
	for _, line := range lines {
		var k uint64
		fmt.Sscanf(string(line[1]), "%x", &k)
		cells := w.cells(nil, k, 1<<22)
		if got := strings.Trim(fmt.Sprint(cells), "[]"); got != string(line[2]) {
			t.Errorf("index %x: cells %s, want %s", k, got, line[2])
		}
		for j := range 300 {
			if w.belongs(k, j) != slices.Contains(cells, int32(j)) {
				t.Errorf("index %x: belongs to %d: %v", k, j, w.belongs(k, j))
			}
		}
	}
}

func TestField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{32, 38, 42, 44, 48} {
		f := newForm(bits, 8)
		for range 200 {
			a := 1 + r.Uint64N(f.p-1)
			if f.mul(a, f.inverse(a)) != 1 || f.add(a, f.neg(a)) != 0 {
				t.Fatalf("p = %d, a = %d", f.p, a)
			}
		}
	}
}

// TestDecode: what comes out is what was put in, also where many pairs are
// accepted wrongly.
func TestDecode(t *testing.T) {
	for _, check := range []int{8, 4} {
		o := newWorld(newForm(42, check), 10_000, 3)
		wrong := 0
		for i := range 600 {
			d := 1 + i%60
			u := o.decode(d, i%(d+1), 4)
			wrong += u.wrong
			if u.false || u.stalled {
				t.Fatalf("decode %d of %d differences with checks of %d bits: %+v", i, d, check, u)
			}
		}
		t.Logf("%d wrong", wrong)
	}
}
