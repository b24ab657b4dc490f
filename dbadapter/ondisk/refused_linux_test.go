package ondisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/child"
)

// TestNoFiles: while the process can open no file, writes are refused with that, which Room
// says, too; then they go on, in the same store.
func TestNoFiles(t *testing.T) {
	const variable = "ONDISK_CHILD"
	if kind := os.Getenv(variable); kind != "" {
		noFiles(t, ondisk.Kind(kind)) // its limits are those of all tests of a process
		if !t.Failed() {
			fmt.Println("went on")
		}
		child.Hold()
	}
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		child.Start(t, "TestNoFiles", variable+"="+string(kind)).Expect("went on")
	}
}

func noFiles(t *testing.T, kind ondisk.Kind) {
	hasher := dbadapter.NewHasher(dbadapter.Secret{1})
	s, err := ondisk.Open(t.TempDir(), kind, ondisk.Options{Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Namespace(t.Context(), dbadapter.NamespaceID{1}, hasher, nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(key string) error {
		r, err := dbadapter.Hash(hasher, dbadapter.Record{
			Key: []byte(key), Value: make([]byte, 1<<18), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(1_780_000_000, 0)), Writer: 1},
		})
		if err == nil {
			_, err = n.Apply(t.Context(), []dbadapter.Write{{Record: r}})
		}
		return err
	}
	var limit syscall.Rlimit
	if err := errors.Join(write("first"), syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)); err != nil {
		t.Fatal(err)
	}
	few := syscall.Rlimit{Cur: 3, Max: limit.Max}
	for round := range 3 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{write("refused"), s.(dbadapter.Able).Able(t.Context())} {
			if !errors.Is(err, dbadapter.ErrAway) || !errors.Is(err, syscall.EMFILE) || errors.Is(err, dbadapter.ErrCorrupt) {
				t.Errorf("without files: %v", err)
			}
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		for i := range 150 { // more than a table in memory takes
			if err := write(fmt.Sprint("key ", round, i)); err != nil {
				t.Fatalf("with files again: %v", err)
			}
		}
	}
}

// TestRefusedFiles: what the system refuses to open is not damaged.
func TestRefusedFiles(t *testing.T) {
	for kind, names := range map[ondisk.Kind][]string{
		ondisk.Badger: {"KEYREGISTRY", "MANIFEST", "FORMAT", "*.sst"},
		ondisk.Pebble: {"MANIFEST-*", "OPTIONS-*", "FORMAT", "*.log"},
	} {
		for _, name := range names {
			dir := closed(t, kind)
			found, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil || len(found) == 0 {
				t.Fatalf("%s has no %s: %v", kind, name, err)
			}
			aside := filepath.Join(t.TempDir(), "aside")
			if err := errors.Join(os.Rename(found[0], aside), os.Mkdir(found[0], 0o700)); err != nil {
				t.Fatal(err)
			}
			s, err := ondisk.Open(dir, "", ondisk.Options{})
			if err == nil {
				err = errors.Join(errors.New("it opens"), s.Close())
			}
			if errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), syscall.EISDIR.Error()) {
				t.Errorf("%s, %s is a folder: %v", kind, name, err)
			}
			if err := errors.Join(os.Remove(found[0]), os.Rename(aside, found[0])); err != nil {
				t.Fatal(err)
			}
			if s, err = ondisk.Open(dir, "", ondisk.Options{}); err != nil {
				t.Errorf("%s, %s is back: %v", kind, name, err)
			} else if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// closed makes a store in a folder.
func closed(t *testing.T, kind ondisk.Kind) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := ondisk.Open(dir, kind, ondisk.Options{})
	if err == nil {
		_, err = s.Namespace(t.Context(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{1}), nil)
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMissingStamp: a store without its stamp is never taken for a new one, whatever kind is
// asked for; the line that the error gives opens it.
func TestMissingStamp(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		for _, as := range []ondisk.Kind{"", ondisk.Badger, ondisk.Pebble} {
			dir := closed(t, kind)
			stamp := filepath.Join(dir, "FORMAT")
			good, err := os.ReadFile(stamp)
			if err := errors.Join(err, os.Remove(stamp)); err != nil {
				t.Fatal(err)
			}
			_, err = ondisk.Open(dir, as, ondisk.Options{})
			if !errors.Is(err, dbadapter.ErrCorrupt) || !errors.Is(err, dbadapter.ErrFormat) {
				t.Fatalf("%s opened as %q: %v", kind, as, err)
			}
			_, line, _ := strings.Cut(err.Error(), "the file is the line: ")
			if line += "\n"; line != string(good) || bytes.Count(good, []byte("\n")) != 1 {
				t.Errorf("%s: the advice is %q, want %q", kind, line, good)
			}
			if err := os.WriteFile(stamp, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := ondisk.Open(dir, "", ondisk.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
