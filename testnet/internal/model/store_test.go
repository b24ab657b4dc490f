package model

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// What the store does other than to put records is there after a power cut, too.
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
		r, err := dbadapter.Hash(h, dbadapter.Record{
			Key: fmt.Appendf(nil, "k%d", i), Value: []byte("v"), Version: dbadapter.Version{Clock: dbadapter.Timestamp(i), Writer: 1},
		})
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
