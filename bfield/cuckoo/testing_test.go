package cuckoo

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func newMap(t testing.TB, config MapConfig) *Map[uint64, uint64] {
	t.Helper()
	m, err := NewMap[uint64, uint64](config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newFilled(t testing.TB, config Config, n int, r *rand.Rand) *Table {
	t.Helper()
	table, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		k := r.Uint64()
		for looksTaken(table, k) {
			k = r.Uint64()
		}
		if err := table.Insert(keyed.Number(k), r.Uint64()&(1<<config.ValueBits-1)); err != nil {
			t.Fatalf("key %d of %d: %v; %+v", i, n, err, table.Stats())
		}
	}
	return table
}

// compare holds a Map against its twin.
func compare(m *Map[uint64, uint64], twin map[uint64]uint64) error {
	if m.Len() != len(twin) {
		return fmt.Errorf("%d keys, want %d", m.Len(), len(twin))
	}
	n := 0
	for k, v := range m.All() {
		if want, ok := twin[k]; !ok || v != want {
			return fmt.Errorf("All yields %#x: %#x, want %#x, %v", k, v, want, ok)
		}
		n++
	}
	if n != len(twin) {
		return fmt.Errorf("All yields %d keys, want %d", n, len(twin))
	}
	for k, want := range twin {
		if v, ok := m.Get(k); !ok || v != want {
			return fmt.Errorf("key %#x has %#x, %v, want %#x", k, v, ok, want)
		}
	}
	return nil
}

// looksTaken says that a key looks the same as one that is in the table.
func looksTaken(t *Table, key uint64) bool {
	_, ok := t.Lookup(keyed.Number(key))
	return ok
}
