package ondisk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// A salvage mends a stamp of which one byte is another one, whatever the kind of the
// store; more damage it refuses, and changes nothing.
func TestSalvageMendsStamp(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		dir := t.TempDir()
		salvage := func() error {
			_, err := ondisk.Salvage(t.Context(), dir, ondisk.Options{}, func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) {
				return nil, nil
			}, func(*dbadapter.Salvaged) error { return nil })
			return err
		}
		s, err := ondisk.Open(dir, kind, ondisk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		stamp := filepath.Join(dir, "FORMAT")
		good, err := os.ReadFile(stamp)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, bytes.Index(good, []byte(kind)), bytes.IndexByte(good, '0'+kvstore.Format), len(good) - 1} {
			flipped := bytes.Clone(good)
			flipped[at] ^= 4
			if err := os.WriteFile(stamp, flipped, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ondisk.KindOf(dir); !errors.Is(err, dbadapter.ErrCorrupt) {
				t.Fatalf("%s: the stamp %q: %v", kind, flipped, err)
			}
			if err := salvage(); err != nil {
				t.Errorf("%s: the salvage with the stamp %q: %v", kind, flipped, err)
			}
			if b, err := os.ReadFile(stamp); err != nil || !bytes.Equal(b, good) {
				t.Errorf("%s: the stamp is %q, %v; want %q", kind, b, err, good)
			}
		}
		for _, bad := range [][]byte{nil, good[:20], bytes.ToUpper(good)} {
			if err := os.WriteFile(stamp, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := salvage(); !errors.Is(err, dbadapter.ErrCorrupt) {
				t.Errorf("%s: the salvage with the stamp %q: %v", kind, bad, err)
			}
			if b, err := os.ReadFile(stamp); err != nil || !bytes.Equal(b, bad) {
				t.Errorf("%s: the stamp is %q, %v; want %q", kind, b, err, bad)
			}
		}
	}
}

// A store of an earlier format is whole, also one whose stamp has no checksum: it is opened and
// salvaged by the program that wrote it, and no error tells a person to empty its folder.
func TestStampOfAnEarlierFormat(t *testing.T) {
	dir := t.TempDir()
	s, err := ondisk.Open(dir, ondisk.Badger, ondisk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(dir, "FORMAT")
	for _, old := range []string{string(kvstore.Stamp("badger", 8)), "syncd store over badger, disk format 7\n", "syncd store over badger, disk format 6\n"} {
		if err := os.WriteFile(stamp, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		_, opened := ondisk.Open(dir, "", ondisk.Options{})
		_, salvaged := ondisk.Salvage(t.Context(), dir, ondisk.Options{}, func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) {
			return nil, nil
		}, nil)
		for what, err := range map[string]error{"opened": opened, "salvaged": salvaged} {
			if !errors.Is(err, dbadapter.ErrFormat) || errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "export it with the older program") {
				t.Errorf("%s with the stamp %q: %v", what, old, err)
			}
		}
		if b, err := os.ReadFile(stamp); err != nil || string(b) != old {
			t.Errorf("the stamp is %q, %v; want %q", b, err, old)
		}
	}
}
