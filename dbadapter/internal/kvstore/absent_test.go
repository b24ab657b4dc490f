package kvstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What a snapshot from before a commit has not found says nothing about what the
// commit has written: an older version of the key stays out.
func TestAbsentAsOfAnOldSnapshot(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	old, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	newer, older := write("k", 2), write("k", 1)
	for what, look := range map[string]func() error{
		"Get":     func() error { _, err := old.Get([]byte("k")); return err },
		"Buckets": func() error { _, err := old.Buckets([]dbadapter.Index{newer[0].Record.Index}); return err },
	} {
		if _, err := n.Apply(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		_ = look() // whether or not it is an error that there is nothing
		if o, err := n.Apply(t.Context(), older); err != nil || o[0].Result != dbadapter.Dominated {
			t.Errorf("%s: an older version was %+v, %v", what, o, err)
		}
	}
}

// A key that was looked up and not found is written without another look-up of its
// index, once; reads of old and new snapshots and writes in any order decide the same
// as a map.
func TestAbsentIsRemembered(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	look := func(s dbadapter.Snapshot, key string) {
		if _, err := s.Buckets([]dbadapter.Index{n.hasher.Index([]byte(key))}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	look(s, "k")
	s.Close()
	if rest := n.absent.others([]dbadapter.Index{n.hasher.Index([]byte("k")), 7}); len(rest) != 1 || rest[0] != 7 {
		t.Errorf("after a look-up the committer still reads %v", rest)
	}
	if _, err := n.Apply(t.Context(), write("k", 1)); err != nil {
		t.Fatal(err)
	}
	if rest := n.absent.others([]dbadapter.Index{n.hasher.Index([]byte("k"))}); len(rest) != 1 {
		t.Error("after a write the committer does not read what it has written")
	}

	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	newest := map[string]int{"k": 1}
	var snapshots []dbadapter.Snapshot
	defer func() {
		for _, s := range snapshots {
			s.Close()
		}
	}()
	for step := range 2000 {
		key := fmt.Sprint(rng.IntN(600))
		switch rng.IntN(4) {
		case 0:
			s, err := n.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if snapshots = append(snapshots, s); len(snapshots) > 3 {
				snapshots[0].Close()
				snapshots = snapshots[1:]
			}
		case 1:
			if len(snapshots) > 0 {
				look(snapshots[rng.IntN(len(snapshots))], key)
			}
		default:
			at := 1 + rng.IntN(1000)
			o, err := n.Apply(t.Context(), write(key, at))
			if err != nil {
				t.Fatal(err)
			}
			want := dbadapter.Applied
			switch held := newest[key]; {
			case at == held:
				want = dbadapter.Same
			case at < held:
				want = dbadapter.Dominated
			default:
				newest[key] = at
			}
			if o[0].Result != want {
				t.Fatalf("seed %d, step %d: %q at %d was %+v, want %d", seed, step, key, at, o, want)
			}
		}
	}
}
