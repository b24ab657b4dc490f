package oblivious

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/iblt"
)

// stored returns Alice and Bob with rows whose values count up.
func stored(t testing.TB, rows, most int) (*Client, *Server, []Row) {
	t.Helper()
	config, err := iblt.ConfigFor(most, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	config.Seed = 42
	bob := NewServer(rows, config.Cells)
	alice, err := NewClient([]byte("0123456789abcdef"), config, bob)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var all []Row
	for i := range rows {
		all = append(all, Row{Key: r.Uint64(), Value: uint64(i)})
	}
	if err := alice.Store(all); err != nil {
		t.Fatal(err)
	}
	return alice, bob, all
}

// TestTraceTellsNothing selects different rows, no rows, and too many: what the
// server sees is the same each time, access by access, and what he stores is
// never the same twice.
func TestTraceTellsNothing(t *testing.T) {
	const n, most = 300, 20
	alice, bob, rows := stored(t, n, most)
	conditions := map[string]func(Row) bool{
		"no row":    func(Row) bool { return false },
		"the first": func(r Row) bool { return r.Value < 10 },
		"the last":  func(r Row) bool { return r.Value >= n-most },
		"one":       func(r Row) bool { return r.Value == 77 },
		"too many":  func(Row) bool { return true },
	}
	var first []Access
	written := map[string]bool{}
	for name, match := range conditions {
		bob.Trace, bob.Writes = nil, nil
		got, err := alice.Select(match)
		want := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !match(r) })
		slices.SortFunc(got, func(a, b Row) int { return cmp.Compare(a.Value, b.Value) })
		if len(want) > most {
			if !errors.Is(err, ErrTooMany) {
				t.Errorf("%s: %d rows, %v", name, len(got), err)
			}
		} else if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
		if first == nil {
			first = bob.Trace
		}
		if !slices.Equal(bob.Trace, first) {
			t.Errorf("%s: the server sees other accesses than for another condition", name)
		}
		for _, b := range bob.Writes {
			if written[string(b)] {
				t.Fatalf("%s: a ciphertext was written twice", name)
			}
			written[string(b)] = true
		}
	}
	k, m := len(alice.layout.Places(nil, 1)), alice.config.Cells
	if want := 2*m + n*(2*k+1); len(first) != want {
		t.Errorf("%d accesses, not 2·%d + %d·(2·%d + 1) = %d", len(first), m, n, k, want)
	}
}

// TestTouchedCellsAreRewritten: what is not selected leaves the cells as they
// are, but not their ciphertext.
func TestTouchedCellsAreRewritten(t *testing.T) {
	alice, bob, rows := stored(t, 1, 5)
	if _, err := alice.Select(func(Row) bool { return false }); err != nil {
		t.Fatal(err)
	}
	for _, at := range alice.layout.Places(nil, rows[0].Key) {
		before := bob.stored[Cells][at]
		if err := alice.touch(rows[0], false); err != nil {
			t.Fatal(err)
		}
		cell, err := alice.readCell(at)
		if err != nil || cell != (iblt.TableCell{}) || string(bob.stored[Cells][at]) == string(before) {
			t.Errorf("cell %d: %+v, %v", at, cell, err)
		}
	}
}

// TestTampering: exchanged or changed ciphertexts are noticed.
func TestTampering(t *testing.T) {
	for _, region := range []Region{Rows, Cells} {
		alice, bob, _ := stored(t, 10, 5)
		if _, err := alice.Select(func(Row) bool { return true }); err != nil && !errors.Is(err, ErrTooMany) {
			t.Fatal(err)
		}
		b := bob.stored[region]
		b[1], b[2] = b[2], b[1]
		if _, err := alice.read(region, 1); err == nil {
			t.Errorf("%c: the exchange of two is not noticed", region)
		}
	}
	alice, _, _ := stored(t, 10, 5)
	for _, err := range []error{
		func() error { _, err := alice.read(Rows, 10); return err }(),
		alice.write(Cells, -1, nil),
		func() error {
			_, err := NewClient(make([]byte, 16), iblt.TableConfig{Cells: 50, Hashes: 5}, NewServer(1, 49))
			return err
		}(),
		func() error {
			_, err := NewClient(nil, iblt.TableConfig{Cells: 50, Hashes: 5}, NewServer(1, 50))
			return err
		}(),
		func() error { _, err := NewClient(make([]byte, 16), iblt.TableConfig{}, NewServer(1, 0)); return err }(),
	} {
		if err == nil {
			t.Error("a wrong use is accepted")
		}
	}
}

func Example() {
	config, err := iblt.ConfigFor(10, 1e-6) // at most 10 rows will match
	if err != nil {
		fmt.Println(err)
		return
	}
	config.Seed = 1 // a secret of Alice's, like the AES key
	bob := NewServer(1000, config.Cells)
	alice, err := NewClient([]byte("sixteen bytes 16"), config, bob)
	if err != nil {
		fmt.Println(err)
		return
	}
	var salaries []Row
	for i := range uint64(1000) {
		salaries = append(salaries, Row{Key: i, Value: 1000 + i*i*7%9973})
	}
	if err := alice.Store(salaries); err != nil {
		fmt.Println(err)
		return
	}
	rows, err := alice.Select(func(r Row) bool { return r.Value > 10_940 })
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	fmt.Println(rows, err)
	// Output:
	// [{256 10967} {364 10956} {512 10949}] <nil>
}
