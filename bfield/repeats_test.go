package bfield

import (
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// TestRepeats inserts the same keys again and again: neither the log nor the field
// grows without end, and a log that is full of repetitions is compacted when it is
// opened.
func TestRepeats(t *testing.T) {
	for name, c := range shapes {
		if c.Values == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const keys, rounds = 2000, 50
			c.Keys = keys
			log := &listLog{}
			m := open(t, c, log, -1)
			insert := func(to Log, round uint64) {
				t.Helper()
				for k := range uint64(keys) {
					v := k % c.Values
					if k == 5 {
						v = round % c.Values // one key has another value each time
					}
					var err error
					if to == log {
						err = m.Insert(keyed.Number(k), v)
					} else {
						err = to.Append([]Record{record(Inserted, m.keyOf(keyed.Number(k)), v)})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			check := func(m *Mutable) {
				t.Helper()
				for k := range uint64(keys) {
					want := k % c.Values
					if k == 5 {
						want = (rounds - 1) % c.Values
					}
					if v, a := m.Lookup(keyed.Number(k)); v != want || a != Found {
						t.Fatalf("key %d answers %d, %v; its value is %d", k, v, a, want)
					}
				}
			}
			for round := range uint64(rounds) {
				insert(log, round)
				if err := m.Repair(); err != nil {
					t.Fatal(err)
				}
				if s := m.Stats(); s.Planned > 2*keys || s.LogRecords > 4*keys {
					t.Fatalf("after %d rounds the field is for %d keys, the log has %d records", round+1, s.Planned, s.LogRecords)
				}
			}
			check(m)
			full := &listLog{}
			for round := range uint64(rounds) {
				insert(full, round)
			}
			m = open(t, c, full, -1)
			check(m)
			if s := m.Stats(); s.Planned > 2*keys || s.LogRecords > keys+keys/exceptionPart+leastExceptions {
				t.Errorf("opened on a log of repetitions, the field is for %d keys, the log has %d records", s.Planned, s.LogRecords)
			}
		})
	}
}

// TestSecondValues inserts many keys again with other values: the exceptions that a repair
// makes of them go with the next one, which compacts the log, and then nothing is due.
func TestSecondValues(t *testing.T) {
	c := shapes["four bits"]
	c.Keys = 5000
	log := &listLog{}
	m := open(t, c, log, -1)
	for round := range uint64(2) {
		for k := range c.Keys / 2 {
			if err := m.Insert(keyed.Number(k), (k+round)%c.Values); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.Repair(); err != nil {
		t.Fatal(err)
	}
	if s := m.Stats(); s.Exceptions != int(c.Keys/2) || !m.full() {
		t.Errorf("after a repair: %+v", s)
	}
	if err := m.Repair(); err != nil {
		t.Fatal(err)
	}
	if s := m.Stats(); s.Exceptions != 0 || s.LogRecords != c.Keys/2 || m.full() {
		t.Errorf("after the next one: %+v", s)
	}
	for k := range c.Keys / 2 {
		if v, a := m.Lookup(keyed.Number(k)); v != (k+1)%c.Values || a != Found {
			t.Fatalf("key %d answers %d, %v", k, v, a)
		}
	}
}

// TestAnswersByChance: while a field is not repaired, an entry that its arrays happen to answer
// is no repetition: arrays that are being made do not hold it.
func TestAnswersByChance(t *testing.T) {
	c := shapes["four bits"]
	c.Keys = 2000
	f, err := BuildFrom(c, func(yield func(key keyed.Key, value uint64) bool) error {
		for k := range c.Keys {
			yield(keyed.Number(k), k%c.Values)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for k := uint64(1 << 40); ; k++ {
		e := entry{key: f.keyOf(keyed.Number(k))}
		acc := f.levels[0].common(e.key, f.mask(), &f.plan)
		value, answer := f.lookup(e.key)
		e.value = value
		if answer != Found || acc == f.encode(e) {
			continue
		}
		if !f.answers(e) {
			t.Errorf("key %d is found by the second array, and does not answer", k)
		}
		f.repaired = false
		if f.answers(e) {
			t.Errorf("key %d counts as held by a field that is not repaired", k)
		}
		return
	}
}
