package examiner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// files are tables that begin with "whole", unless they are damaged.
type files struct {
	dir  string
	used []uint64
	read []uint64
	stop func() // called when one is read
}

func (f *files) Tables() ([]uint64, error) { return slices.Clone(f.used), nil }
func (f *files) Path(id uint64) string     { return filepath.Join(f.dir, fmt.Sprint(id)) }

func (f *files) Read(_ context.Context, id uint64) error {
	f.read = append(f.read, id)
	b, err := os.ReadFile(f.Path(id))
	if err == nil && !bytes.HasPrefix(b, []byte("whole")) {
		err = damage.File(f.Path(id), "it is damaged")
	}
	if f.stop != nil {
		f.stop()
	}
	return err
}

// write makes a table of some age.
func (f *files) write(t *testing.T, id uint64, text string) {
	t.Helper()
	old := time.Now().Add(-2 * age)
	if err := errors.Join(os.WriteFile(f.Path(id), []byte(text), 0o600), os.Chtimes(f.Path(id), old, old)); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.used, id) {
		f.used = append(f.used, id)
	}
}

// look starts an examiner, as after a start of the process, and lets it look once.
func (f *files) look(ctx context.Context, t *testing.T) (e *Examiner, read []uint64, err error) {
	t.Helper()
	e = Start(f, f.dir, slog.New(slog.DiscardHandler), nil, true)
	f.read = nil
	err = e.Look(ctx, false)
	return e, f.read, err
}

// New tables are read when they have some age, and each again after a day; which were read
// outlasts the process, however it ends.
func TestTurns(t *testing.T) {
	f := &files{dir: t.TempDir()}
	f.write(t, 1, "whole")
	f.write(t, 2, "whole")
	if err := os.Chtimes(f.Path(2), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, read, err := f.look(t.Context(), t)
	if err != nil || !slices.Equal(read, []uint64{1}) {
		t.Fatalf("it has read %v, %v", read, err)
	}
	f.write(t, 2, "whole")
	if _, read, err = f.look(t.Context(), t); err != nil || !slices.Equal(read, []uint64{2}) {
		t.Errorf("after a restart it has read %v, %v", read, err)
	}
	both := Load(f.dir)
	for id, ago := range map[uint64]time.Duration{1: again + time.Minute, 2: again + time.Hour} {
		r := both[id]
		r.At = time.Now().Add(-ago)
		both[id] = r
	}
	if err := Save(f.dir, both); err != nil {
		t.Fatal(err)
	}
	var e *Examiner
	if e, read, err = f.look(t.Context(), t); err != nil || !slices.Equal(read, []uint64{2, 1}) {
		t.Errorf("after a day it has read %v, %v", read, err)
	}
	if f.read = nil; e.Look(t.Context(), false) != nil || len(f.read) != 0 {
		t.Errorf("it has read %v twice", f.read)
	}
	f.write(t, 1, "whole, and changed")
	if f.read = nil; e.Look(t.Context(), false) != nil || !slices.Equal(f.read, []uint64{1}) {
		t.Errorf("of a table that was changed it has read %v", f.read)
	}
}

// A process that ends in the midst of a round goes on where it was.
func TestRoundIsResumed(t *testing.T) {
	f := &files{dir: t.TempDir()}
	for id := range uint64(4) {
		f.write(t, id+1, "whole")
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = func() {
		if len(f.read) == 3 {
			cancel()
		}
	}
	if _, read, err := f.look(ctx, t); !errors.Is(err, context.Canceled) || len(read) != 3 {
		t.Fatalf("it has read %v, %v", read, err)
	}
	f.stop = nil
	if _, read, err := f.look(t.Context(), t); err != nil || !slices.Equal(read, []uint64{3, 4}) {
		t.Errorf("then it has read %v, %v", read, err)
	}
}

// Damage is told of once by a process, and by each look that reads all.
func TestDamageIsToldOnce(t *testing.T) {
	f := &files{dir: t.TempDir()}
	f.write(t, 1, "whole")
	f.write(t, 2, "what was whole")
	f.used = append(f.used, 3) // and not there
	e, _, err := f.look(t.Context(), t)
	if !errors.Is(err, dbadapter.ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte("the file 2")) || bytes.Contains([]byte(err.Error()), []byte("the file 1:")) {
		t.Errorf("it has found %v", err)
	}
	if err := e.Look(t.Context(), false); err != nil {
		t.Errorf("it has found it again: %v", err)
	}
	if err := e.Look(t.Context(), true); !errors.Is(err, dbadapter.ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte("missing")) {
		t.Errorf("reading all, it has found %v", err)
	}
	if _, _, err := f.look(t.Context(), t); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("after a restart it has found %v", err)
	}
	f.used = []uint64{1}
	if err := e.Look(t.Context(), true); err != nil {
		t.Errorf("once the tables are gone it has found %v", err)
	}
}

// A table that was found damaged, and then whole by a look that reads all, is one like the
// others again: a fault of the memory is over, and the next damage is told of.
func TestWholeAgain(t *testing.T) {
	f := &files{dir: t.TempDir()}
	f.write(t, 1, "what was whole")
	e, _, err := f.look(t.Context(), t)
	if !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Fatalf("it has found %v", err)
	}
	f.write(t, 1, "whole again")
	if err := e.Look(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	f.write(t, 1, "and damaged")
	if err := e.Look(t.Context(), false); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("of the second damage it has found %v", err)
	}
}

// In the background it begins within seconds, whatever the process before it has left.
func TestBackground(t *testing.T) {
	synctest.Test(t, testBackground)
}

func testBackground(t *testing.T) {
	f := &files{dir: t.TempDir()}
	f.write(t, 1, "damaged")
	if err := os.WriteFile(filepath.Join(f.dir, File), []byte("cut sho"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := make(chan error, 1)
	e := Start(f, f.dir, slog.New(slog.DiscardHandler), func(err error) { found <- err }, false)
	defer e.Close()
	select {
	case err := <-found:
		if !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Error(err)
		}
	case <-time.After(3 * every):
		t.Error("it has not looked")
	}
}
