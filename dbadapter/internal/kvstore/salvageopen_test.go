package kvstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A salvage of an open store: snapshots end, what was written stays, and writes go on.
func TestSalvageOpen(t *testing.T) {
	s, dir := newSalvaged(), t.TempDir()
	store, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for round := range salvageRounds {
		s.write(t, store, round)
	}
	id := dbadapter.NamespaceID{1}
	n, err := store.Namespace(t.Context(), id, s.hashers[id], nil)
	if err != nil {
		t.Fatal(err)
	}
	view, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	ceiling := n.Ceiling()
	done, err := store.Salvage(t.Context(), nil, nil)
	if err != nil || len(done.Lost) > 0 || len(done.Damage) > 0 {
		t.Fatalf("a sound store: %+v, %v", done, err)
	}
	if _, err := view.Get([]byte("1 of 1")); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a snapshot from before: %v", err)
	}
	if n.Ceiling() != ceiling {
		t.Errorf("the ceiling is %d, and was %d", n.Ceiling(), ceiling)
	}
	if seq, _, err := n.Summary(t.Context()); err != nil || seq != 1 {
		t.Errorf("the summary: %d, %v", seq, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	s.check(t, store, done)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A salvage that is cut short at any step is finished, or forgotten, by the next
// opening.
func TestSalvageCut(t *testing.T) {
	s, dir := newSalvaged(), t.TempDir()
	store, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, store, salvageRounds-1)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	made := func() string { // a folder with complete new files beside the old ones
		to := t.TempDir()
		copyFiles(t, dir, to)
		r := newRescue(to, engine, Options{MinFree: -1, Now: time.Now})
		for id, h := range s.hashers {
			r.known[id] = h
		}
		if err := r.build(context.Background(), filepath.Join(to, salvageNew), &dbadapter.Salvaged{Lost: map[dbadapter.NamespaceID]dbadapter.Loss{}}); err != nil {
			t.Fatal(err)
		}
		return to
	}
	for name, cut := range map[string]func(to string) error{
		"being made": func(to string) error {
			files, err := filepath.Glob(filepath.Join(to, salvageNew, "MANIFEST*"))
			if err != nil {
				return err
			}
			return os.Remove(files[0])
		},
		"complete": func(to string) error { return rename(to, salvageNew, salvageWhole) },
		"the old files half removed": func(to string) error {
			files, err := filepath.Glob(filepath.Join(to, "MANIFEST*"))
			if err != nil {
				return err
			}
			return errors.Join(rename(to, salvageNew, salvageWhole), os.Remove(files[0]), os.Remove(filepath.Join(to, cleanFile)))
		},
		"the new files half moved": func(to string) error {
			files, err := filepath.Glob(filepath.Join(to, salvageNew, "MANIFEST*"))
			if err != nil {
				return err
			}
			err = errors.Join(rename(to, salvageNew, salvageWhole), removeOld(to), rename(to, salvageWhole, salvageMoving))
			name := filepath.Base(files[0])
			return errors.Join(err, os.Rename(filepath.Join(to, salvageMoving, name), filepath.Join(to, name)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := made()
			if err := cut(to); err != nil {
				t.Fatal(err)
			}
			store, err := openEngine(to, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if missing := s.check(t, store, &dbadapter.Salvaged{}); missing > 0 {
				t.Errorf("%d records are missing", missing)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{salvageNew, salvageWhole, salvageMoving} {
				if exists(filepath.Join(to, left)) {
					t.Errorf("%s is left", left)
				}
			}
		})
	}
}

// Examine names the table of which a bit is flipped, and a salvage of the open store
// makes it whole.
func TestExamine(t *testing.T) {
	s, dir := writeSalvaged(t)
	store, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for id, h := range s.hashers {
		if _, err := store.Namespace(t.Context(), id, h, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("there is no table", err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(tables[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[700] ^ 1}, 700); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Examine(t.Context()); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(tables[0])) {
		t.Fatalf("a flipped bit of %s: %v", tables[0], err)
	}
	full := errors.New("there is no room for a copy")
	if done, err := store.Salvage(t.Context(), nil, func(string) error { return full }); !errors.Is(err, full) {
		t.Fatalf("without a copy: %+v, %v", done, err)
	}
	if err := store.Examine(t.Context()); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Fatalf("the files have changed without a copy: %v", err)
	}
	var kept []byte
	done, err := store.Salvage(t.Context(), nil, func(from string) (err error) {
		kept, err = os.ReadFile(filepath.Join(from, filepath.Base(tables[0])))
		return err
	})
	if err != nil || !strings.Contains(fmt.Sprint(done.Damage), filepath.Base(tables[0])) {
		t.Fatalf("%+v, %v", done, err)
	}
	if b[700] ^= 1; !bytes.Equal(kept, b) {
		t.Error("a copy cannot be made of the damaged files")
	}
	if err := store.Examine(t.Context()); err != nil {
		t.Errorf("after the salvage: %v", err)
	}
	for _, n := range store.life.Open() {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.check(t, store, done)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
