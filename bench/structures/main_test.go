package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePoints(t *testing.T) {
	for text, want := range map[string]string{
		"100:2:1":                     "100:2:1",
		" 10000:3:4 , 1000000:256:8 ": "10000:3:4,1000000:256:8",
		defaultPoints:                 defaultPoints,
	} {
		points, err := parsePoints(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range points {
			got = append(got, p.String())
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	for _, text := range []string{
		"", "100:2", "100:2:1:1", "99:2:1", "100000001:2:1", "100:1:1", "100:65537:1", "100:2:0", "100:2:25", "100:2:1,", "a:2:1", "1e3:2:1",
		strings.Repeat("100:2:1,", 100) + "100:2:1",
	} {
		if points, err := parsePoints(text); err == nil {
			t.Errorf("%.30q was read as %v", text, points)
		}
	}
	for values, want := range map[int]int{2: 1, 3: 2, 4: 2, 5: 3, 256: 8, 257: 9, 65536: 16} {
		if got := (point{100, values, 1}).valueBits(); got != want {
			t.Errorf("%d values take %d bits, not %d", values, got, want)
		}
	}
}

func FuzzParsePoints(f *testing.F) {
	f.Add(defaultPoints)
	f.Add("100:2:1,,")
	f.Fuzz(func(t *testing.T, text string) {
		points, err := parsePoints(text)
		if err != nil {
			return
		}
		for _, p := range points {
			again, err := parsePoint(p.String())
			if err != nil || again != p || p.Values > mostValues || p.Bits > mostBits || p.Keys > mostKeys {
				t.Errorf("%v is read as %v: %v", p, again, err)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"-repeats", "0"}, {"-points", "1:1:1"}, {"more"}, {"-sweep", "1"}, {"-none"}} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

// TestSmallPoints: all structures hold all keys, and take strangers at the planned rate.
func TestSmallPoints(t *testing.T) {
	for _, p := range []point{{10_000, 2, 4}, {3000, 16, 10}, {20_000, 65536, 7}} {
		rows, err := measure(p, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		m := measured{p, rows}
		for _, r := range rows {
			if r.Cannot != "" {
				if p.Values <= mostFilters || !strings.HasSuffix(r.Structure, "a value") {
					t.Errorf("%v: %s: %s", p, r.Structure, r.Cannot)
				}
				continue
			}
			if r.Wrong != 0 || r.Held != p.Keys || r.Strangers < 1_000_000 {
				t.Errorf("%v: %s: %d wrong of %d, %d strangers", p, r.Structure, r.Wrong, r.Held, r.Strangers)
			}
			if !r.asPlanned() {
				t.Errorf("%v: %s: a rate of %v, planned %v", p, r.Structure, r.rate(), r.Planned)
			}
			if exact := r.Structure == goMap || r.Structure == "exact cuckoo map"; exact != (r.Planned == 0) || r.Planned > p.rate()*1.05 {
				t.Errorf("%v: %s: planned %v for %v", p, r.Structure, r.Planned, p.rate())
			}
			if r.Several != 0 && !strings.HasSuffix(r.Structure, "a value") {
				t.Errorf("%v: %s: %d keys have several values", p, r.Structure, r.Several)
			}
		}
		var out bytes.Buffer
		m.print(&out)
		if got := strings.Count(out.String(), "\n| "); got != len(kinds)+1 {
			t.Errorf("%v: %d rows:\n%s", p, got, out.String())
		}
	}
}

// TestSpace: the heap grows by what the structure says of itself, and little more.
func TestSpace(t *testing.T) {
	p := point{50_000, 16, 8}
	keys := &task{point: p, keys: distinct(rand.New(rand.NewPCG(1, 1)), p.Keys), values: make([]uint64, p.Keys)}
	for i := range keys.values {
		keys.values[i] = uint64(i % 16)
	}
	rows, err := measure(p, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range kinds {
		b, err := k.build(keys)
		if err != nil {
			t.Fatal(err)
		}
		said := float64(b.bits) / float64(p.Keys)
		if got := rows[i].BitsAKey; got < said*0.98 || said > 0 && got > said*1.2+1 {
			t.Errorf("%s: %.2f bits a key on the heap, said %.2f", k.name, got, said)
		}
	}
}

// TestFault: a lost key and a rate that is not as planned are told.
func TestFault(t *testing.T) {
	good := row{Structure: "it", Held: 10, Strangers: 10_000, Found: 100, Planned: 0.01}
	wrong, often := good, good
	wrong.Wrong, often.Found = 1, 150
	for want, r := range map[string]row{"": good, "answered wrongly": wrong, "rate of false positives": often} {
		err := (&report{Points: []measured{{point{100, 2, 1}, []row{r}}}}).fault()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestCount: a structure that forgets, confuses or finds too much is caught.
func TestCount(t *testing.T) {
	p := point{1000, 4, 4}
	k := &task{point: p, keys: distinct(rand.New(rand.NewPCG(1, 1)), p.Keys), values: make([]uint64, p.Keys)}
	for name, c := range map[string]struct {
		b     built
		wrong int
	}{
		"right":    {built{answer: func(uint64) (uint64, int) { return 0, 1 }}, 0},
		"absent":   {built{answer: func(uint64) (uint64, int) { return 0, 0 }}, 1000},
		"confused": {built{answer: func(uint64) (uint64, int) { return 3, 1 }}, 1000},
		"several":  {built{answer: func(uint64) (uint64, int) { return 0, 2 }}, 1000},
		"among":    {built{answer: func(uint64) (uint64, int) { return 1, 2 }, among: func(_, v uint64) bool { return v == 0 }}, 0},
	} {
		var r row
		r.count(&c.b, k)
		if r.Wrong != c.wrong || r.Held != 1000 {
			t.Errorf("%s: %d wrong of %d", name, r.Wrong, r.Held)
		}
	}
}

func TestPerfectPacks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for value := 1; value <= 16; value++ {
		for fingerprint := 1; fingerprint <= 24; fingerprint++ {
			p := perfect{value: value, fingerprint: fingerprint, words: make([]uint64, 100*(value+fingerprint)/64+2)}
			want := make([]uint64, 100)
			for i := range want {
				want[i] = random.Uint64() & (1<<(value+fingerprint) - 1)
				p.put(uint64(i), want[i])
			}
			for i, w := range want {
				if got := p.get(uint64(i)); got != w {
					t.Fatalf("%d and %d bits: entry %d is %x, not %x", value, fingerprint, i, got, w)
				}
			}
		}
	}
}

func TestMedian(t *testing.T) {
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 || !math.IsNaN(median(nil)) {
		t.Error("wrong median")
	}
	if got := beside([]float64{10, 20, 30}, []float64{20, 20, 20}); got != "20 (1.00)" {
		t.Error(got)
	}
}

// TestRun: JSON and charts of a small run.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	var out bytes.Buffer
	if err := run([]string{"--points", "5000:4:5,5000:2000:5", "--repeats", "2", "--json", "--sweep", "5000", "--out", folder}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || len(r.Points[0].Rows) != len(kinds) || len(r.Points[0].Rows[0].Hit) != 2 || len(r.Space) != 7*len(kinds) {
		t.Errorf("have %d points, %d spaces", len(r.Points), len(r.Space))
	}
	for _, name := range []string{"structures-time.svg", "structures-rate.svg"} {
		picture, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(picture))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Contains(picture, []byte("B-field")) {
			t.Errorf("%s has no legend", name)
		}
	}
}
