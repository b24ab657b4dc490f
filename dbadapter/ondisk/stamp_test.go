package ondisk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// A store whose stamp is damaged is rescued as what its files are.
func TestRescueOfAStamp(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		dir, to := closed(t, kind), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("syncd"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ondisk.KindOf(dir); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Fatal(err)
		}
		known := map[dbadapter.NamespaceID]dbadapter.Hasher{{1}: dbadapter.NewHasher(dbadapter.Secret{1})}
		var r ondisk.Rescued
		err := ondisk.Rescue(t.Context(), dir, to, ondisk.Options{}, func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) { return known, nil },
			func(of ondisk.Rescued) error { r = of; return nil })
		if err != nil || r.Why != nil || r.Missing[dbadapter.NamespaceID{1}] != 0 {
			t.Errorf("%s: %v, %+v", kind, err, r)
		}
		if got, err := ondisk.KindOf(to); got != kind || err != nil {
			t.Errorf("%s: the new store is one of %s, %v", kind, got, err)
		}
	}
}

// A store of an earlier format is whole, also one whose stamp has no checksum: it is opened and
// rescued by the program that wrote it, and no error tells a person to empty its folder.
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
		rescued := ondisk.Rescue(t.Context(), dir, filepath.Join(t.TempDir(), "to"), ondisk.Options{}, func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) {
			return nil, nil
		}, nil)
		for what, err := range map[string]error{"opened": opened, "rescued": rescued} {
			if !errors.Is(err, dbadapter.ErrFormat) || errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "export it with the older program") {
				t.Errorf("%s with the stamp %q: %v", what, old, err)
			}
		}
		if b, err := os.ReadFile(stamp); err != nil || string(b) != old {
			t.Errorf("the stamp is %q, %v; want %q", b, err, old)
		}
	}
}
