package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

func entry(n int) *logged {
	return &logged{writes: []dbadapter.Write{{Record: dbadapter.Hashed{Record: dbadapter.Record{
		Key: fmt.Appendf(nil, "k%d", n), Value: []byte("v"), Version: dbadapter.Version{Clock: dbadapter.Timestamp(n), Writer: 1},
	}}}}}
}

// replayed opens the log and returns the keys in it.
func replayed(d *sim.Disk) (l *wal, keys []string, err error) {
	l, err = openLog(d, "", func(e *logged) error {
		for _, w := range e.writes {
			keys = append(keys, string(w.Record.Key))
		}
		return nil
	})
	return l, keys, err
}

// A log of n entries, the last of them not synced.
func filled(t *testing.T, seed uint64, n int) *sim.Disk {
	t.Helper()
	d := sim.NewDisk(sim.New(seed), 0)
	l, _, err := replayed(d)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := l.append(entry(i)); err != nil {
			t.Fatal(err)
		}
		if i < n-1 {
			if err := l.commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// After a power cut all committed entries are there; others may be there or not;
// and the log takes further entries.
func TestLogAfterPowerCut(t *testing.T) {
	kept := map[int]int{}
	for seed := range uint64(100) {
		d := filled(t, seed, 4)
		d.PowerCut()
		l, keys, err := replayed(d)
		if err != nil || len(keys) < 3 || len(keys) > 4 || !slices.Equal(keys[:3], []string{"k0", "k1", "k2"}) {
			t.Fatalf("seed %d: %v, %v", seed, keys, err)
		}
		kept[len(keys)]++
		if err := errors.Join(l.append(entry(9)), l.commit()); err != nil {
			t.Fatal(err)
		}
		d.PowerCut()
		if _, again, err := replayed(d); err != nil || !slices.Equal(again, append(keys, "k9")) {
			t.Errorf("seed %d: then %v, %v", seed, again, err)
		}
	}
	if kept[3] == 0 || kept[4] == 0 {
		t.Errorf("the entry that was not synced was there in %d of 100", kept[4])
	}
}

// The log reports each single flipped bit of its synced bytes, or reads the same.
func TestLogAfterFlip(t *testing.T) {
	whole := filled(t, 1, 4).Copy()
	_, want, err := replayed(whole.Copy())
	if err != nil || len(want) != 3 {
		t.Fatal(want, err)
	}
	reported, bits := 0, 0
	for ; ; bits++ {
		d := whole.Copy()
		d.Flip(uint64(bits))
		_, keys, err := replayed(d)
		switch {
		case errors.Is(err, dbadapter.ErrCorrupt):
			reported++
		case err != nil:
			t.Fatal(err)
		case !slices.Equal(keys, want):
			t.Fatalf("bit %d: %v", bits, keys)
		}
		if bits > 0 && bits == 8*(len(whole.File("log").Bytes())+len(whole.File("mark").Bytes())) {
			break
		}
	}
	if logged := 8 * len(whole.File("log").Bytes()); reported < logged {
		t.Errorf("%d flips reported, of %d in the log alone", reported, logged)
	}
}

// What the store does beside putting records is there after a power cut, too.
func TestStoreAfterPowerCut(t *testing.T) {
	now := Epoch
	disk := sim.NewDisk(sim.New(1), 0)
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	var s *store
	open := func() {
		var err error
		if s, err = openStore(disk, "", dbadapter.NamespaceID{1}, h, logOptions{id: 1}, func() time.Time { return now }, func([]dbadapter.Change) {}); err != nil {
			t.Fatal(err)
		}
		s.observed, s.admitted = func(*dbadapter.Record) {}, func() {}
	}
	open()
	var puts, removals []dbadapter.Write
	for i := range 4 {
		r, err := dbadapter.Hash(h, entry(i).writes[0].Record.Record)
		if err != nil {
			t.Fatal(err)
		}
		puts = append(puts, dbadapter.Write{Record: r})
		removals = append(removals, dbadapter.Write{Record: r, Action: dbadapter.SetAside})
	}
	removals[3].Action = dbadapter.Collect
	ctx := t.Context()
	_, err := s.Apply(ctx, puts)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err = s.Apply(ctx, removals[1:]); err != nil {
		t.Fatal(err)
	}
	aside := now
	now = now.Add(time.Hour)
	if err := errors.Join(s.Raise(ctx, 99), s.Forget(ctx, 1)); err != nil {
		t.Fatal(err)
	}
	disk.PowerCut()
	open()
	var kept []dbadapter.Kept
	for k, err := range s.Kept(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, k)
	}
	if len(kept) != 1 || kept[0].Seq != 2 || string(kept[0].Record.Key) != "k2" || !kept[0].At.Equal(aside) {
		t.Errorf("the kept log is %+v", kept)
	}
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := snap.Get(puts[i].Record.Key); (err == nil) != (i == 0) {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if latest := puts[3].Record.Version.Clock; s.Latest() != latest || s.Ceiling() != max(99, latest) {
		t.Errorf("Latest is %d, Ceiling %d", s.Latest(), s.Ceiling())
	}
}

func FuzzReadEntry(f *testing.F) {
	dead := dbadapter.Write{Record: dbadapter.Hashed{Record: dbadapter.Record{Key: []byte("k"), Deleted: true, Signature: make([]byte, 64)}}, Action: dbadapter.SetAside}
	replaced := dbadapter.Write{Record: dbadapter.Hashed{Record: dbadapter.Record{Key: []byte("k")}}, Action: dbadapter.Replace, If: &dbadapter.Version{Clock: 7}, Past: 9}
	f.Add(newEntry(entry(1)))
	f.Add(newEntry(&logged{writes: []dbadapter.Write{dead, replaced}}))
	f.Add(newEntry(&logged{what: logLower, to: 7}))
	f.Add(newEntry(&logged{what: logForget, seqs: []uint64{7, 8}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, size, err := readEntry(b)
		if err != nil {
			return
		}
		if again := newEntry(e); !slices.Equal(again, b[:size]) && len(again) <= size {
			// Other bytes can encode the same (a number in more bytes); they must
			// read back the same.
			more, _, err := readEntry(again)
			if err != nil || !reflect.DeepEqual(more, e) {
				t.Errorf("%x reads as %v, and that as %v, %v", b, e, more, err)
			}
		}
	})
}
