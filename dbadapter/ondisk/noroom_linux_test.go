package ondisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// fullDisk is a small disk that another program fills.
type fullDisk struct {
	testing.TB
	dir string
}

func newFullDisk(t testing.TB, size string) fullDisk {
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: %s mounts a disk, which only root may: %v", t.Name(), err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return fullDisk{t, dir}
}

func (d fullDisk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves no byte.
func (d fullDisk) fill() {
	d.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4096} {
		for b := make([]byte, size); err == nil; {
			_, err = f.Write(b)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.Fatal(err)
		}
		err = nil
	}
	if err := f.Close(); err != nil {
		d.Fatal(err)
	}
}

func (d fullDisk) free() {
	d.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.Fatal(err)
	}
}

// TestNoRoom: each store on a disk that its own writes, or another program, have filled, or
// that has no byte left. What is refused says how many bytes are missing, and leaves nothing;
// what was acknowledged is read; and once there is room, all goes on in the open store.
func TestNoRoom(t *testing.T) {
	hasher := dbadapter.NewHasher(dbadapter.Secret{1})
	write := func(i int, deleted bool) []dbadapter.Write {
		r := dbadapter.Record{Key: fmt.Appendf(nil, "key %d", i), Value: bytes.Repeat([]byte("v"), 256<<10), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(1_780_000_000, 0)), Writer: 1}}
		if deleted {
			r.Deleted, r.Value, r.Version.Writer = true, nil, 2
		}
		h, err := dbadapter.Hash(hasher, r)
		if err != nil {
			t.Fatal(err)
		}
		return []dbadapter.Write{{Record: h}}
	}
	for kind, other := range map[ondisk.Kind]ondisk.Kind{ondisk.Badger: ondisk.Pebble, ondisk.Pebble: ondisk.Badger} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disk, elsewhere := newFullDisk(t, "200m"), t.TempDir()
			dir := filepath.Join(disk.dir, "store")
			var s dbadapter.Backuper
			var n dbadapter.Namespace
			open := func() {
				t.Helper()
				var err error
				if s, err = ondisk.Open(dir, kind, ondisk.Options{}); err != nil {
					t.Fatal(err)
				}
				if n, err = s.Namespace(t.Context(), dbadapter.NamespaceID{1}, hasher, nil); err != nil {
					t.Fatal(err)
				}
			}
			apply := func(w []dbadapter.Write) error { _, err := n.Apply(t.Context(), w); return err }
			held, copied := 0, []byte(nil)
			look := func(when string) {
				t.Helper()
				v, err := n.Snapshot()
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				defer v.Close()
				for i := range held {
					if r, err := v.Get(fmt.Appendf(nil, "key %d", i)); err != nil || len(r.Value) != 256<<10 {
						t.Fatalf("%s: record %d of %d: %v", when, i, held, err)
					}
				}
			}
			copyTo := func(path string) error {
				_, err := ondisk.Copy(t.Context(), s, path, other, ondisk.Options{}, nil)
				return err
			}
			backup := func() ([]byte, error) {
				c, err := s.Checkpoint(t.Context())
				if err != nil {
					return nil, err
				}
				defer c.Close()
				var b bytes.Buffer
				_, err = c.Copy(t.Context(), &b, nil)
				return b.Bytes(), err
			}
			refused := func(when string) {
				t.Helper()
				for what, do := range map[string]func() error{
					"write":     func() error { return apply(write(held, false)) },
					"delete":    func() error { return apply(write(0xdead, true)) },
					"namespace": func() error { _, err := s.Namespace(t.Context(), dbadapter.NamespaceID{2}, hasher, nil); return err },
					"raise":     func() error { return n.Raise(t.Context(), n.Ceiling()+1<<40) },
					"compact":   func() error { return s.Compact(t.Context()) },
					"migrate":   func() error { return copyTo(filepath.Join(disk.dir, "migrated")) },
					"restore": func() error {
						return ondisk.Restore(t.Context(), filepath.Join(disk.dir, "restored"), kind, ondisk.Options{}, one(copied))
					},
					"room": func() error { return s.(dbadapter.Able).Able(t.Context()) },
				} {
					err := do()
					if room, counted := errors.AsType[*dbadapter.NoRoom](err); !counted || room.Free >= room.Need {
						t.Errorf("%s: %s: %v", when, what, err)
					}
				}
				if err := errors.Join(os.RemoveAll(filepath.Join(disk.dir, "migrated")), os.RemoveAll(filepath.Join(disk.dir, "restored"))); err != nil {
					t.Fatal(err)
				}
				look(when)
			}
			fill := func() {
				t.Helper()
				for {
					err := apply(write(held, false))
					if errors.Is(err, dbadapter.ErrNoRoom) {
						return
					} else if err != nil {
						t.Fatal(err)
					}
					held++
				}
			}
			open()
			fill()
			// While a table in memory is written to the disk, it takes its room twice.
			for err := apply(write(0xdead, true)); err != nil; err = apply(write(0xdead, true)) {
				if !errors.Is(err, dbadapter.ErrNoRoom) || t.Context().Err() != nil {
					t.Fatalf("a deletion on a disk that own writes have filled: %v", err)
				}
				time.Sleep(time.Millisecond)
			}
			look("own writes")
			var err error
			if copied, err = backup(); err != nil {
				t.Errorf("a backup on a full disk: %v", err)
			}
			if err := copyTo(filepath.Join(elsewhere, "copied")); err != nil {
				t.Errorf("a copy to another disk: %v", err)
			}
			disk.fill()
			refused("another program")
			disk.free()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk.fill()
			open()
			refused("a start on 0 bytes")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			open()
			refused("another start")
			disk.free()
			if err := syscall.Mount("none", disk.dir, "tmpfs", syscall.MS_REMOUNT, "size=1g"); err != nil {
				t.Fatal(err)
			}
			if err := apply(write(held, false)); err != nil {
				t.Errorf("with room again: %v", err)
			}
			held++
			look("with room again")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			open()
			look("at the end")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// one yields one copy.
func one(b []byte) func(func(io.Reader, error) bool) {
	return func(yield func(io.Reader, error) bool) { yield(bytes.NewReader(b), nil) }
}
