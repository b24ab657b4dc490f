package pgdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/pgserver"
)

// readAll reads all that a namespace holds, in every way, and returns the errors.
func readAll(t *testing.T, n dbadapter.Namespace) (errs []error) {
	t.Helper()
	ctx := t.Context()
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	s, err := n.Snapshot()
	if err != nil {
		return []error{err}
	}
	defer s.Close()
	for _, err := range s.Scan(ctx, nil, nil) {
		add(err)
	}
	var indices []dbadapter.Index
	for p, err := range s.Pairs(ctx, 0, 0) {
		add(err)
		indices = append(indices, p.Index)
	}
	for i := range keysOfWriter {
		_, err := s.Get(fmt.Appendf(nil, "0/%d", i))
		add(err)
	}
	add(s.Lookup(indices, make([]dbadapter.Checksum, len(indices))))
	for _, index := range indices {
		_, err := s.Bucket(index)
		add(err)
	}
	for _, err := range n.Changes(ctx, 0) {
		add(err)
	}
	for _, err := range n.Kept(ctx) {
		add(err)
	}
	_, _, err = n.Summary(ctx)
	add(err)
	return errs
}

// TestDamage changes each column of each row behind the store's back, and removes
// rows: what is read then is an ErrCorrupt, and never something else than what was
// written.
func TestDamage(t *testing.T) {
	server := pgserver.Start(t)
	const flip = `set_byte(%[1]s, length(%[1]s) - 1, get_byte(%[1]s, length(%[1]s) - 1) # 4)`
	first := `key = '0/0'`
	for i, damage := range []string{
		`UPDATE records SET value = ` + fmt.Sprintf(flip, "value") + ` WHERE ` + first,
		`UPDATE records SET head = ` + fmt.Sprintf(flip, "head") + ` WHERE ` + first,
		`UPDATE records SET head = set_byte(head, 0, 1) WHERE ` + first,
		`UPDATE records SET head = '' WHERE ` + first,
		`UPDATE records SET key = '0/x' WHERE ` + first,
		`UPDATE records SET checksum = checksum # 1 WHERE ` + first,
		`UPDATE records SET checksum = checksum # (1::bigint << 60) WHERE ` + first,
		`UPDATE records SET idx = idx # 1 WHERE ` + first,
		`DELETE FROM records WHERE ` + first,
		`UPDATE log SET entry = ` + fmt.Sprintf(flip, "entry") + ` WHERE last = (SELECT max(last) FROM log)`,
		`DELETE FROM log WHERE last = (SELECT min(last) FROM log)`,
		`DELETE FROM log WHERE last = (SELECT max(last) FROM log)`,
		`UPDATE kept SET entry = ` + fmt.Sprintf(flip, "entry") + ` WHERE seq = 1`,
		`DELETE FROM kept WHERE seq = 1`,
		`UPDATE summaries SET summary = ` + fmt.Sprintf(flip, "summary"),
		`DELETE FROM summaries`,
		`UPDATE namespaces SET head = ` + fmt.Sprintf(flip, "head"),
	} {
		o := pgdb.Options{Schema: fmt.Sprint("damage", i)}
		store := open(t, server, o)
		n := namespaceOf(t, store)
		for number := 1; number <= 2; number++ {
			writes := batchOf(t, 0, number)
			if number == 2 { // by another writer, which did not know the first: a conflict
				r := writes[0].Record.Record
				r.Version.Writer = 2
				var err error
				if writes[0].Record, err = dbadapter.Hash(hasher, r); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := n.Apply(t.Context(), writes); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.SaveSummary(t.Context(), 3, []byte("summary")); err != nil {
			t.Fatal(err)
		}
		if errs := readAll(t, n); len(errs) > 0 {
			t.Fatalf("undamaged: %v", errs)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		sql(t, server, `SET search_path = `+o.Schema+`; `+damage)
		store = open(t, server, o)
		var errs []error
		n, err := store.Namespace(t.Context(), id, hasher, nil)
		if err != nil {
			errs = []error{err}
		} else {
			errs = readAll(t, n)
		}
		if len(errs) == 0 {
			t.Errorf("%s: all is read as if nothing had happened", damage)
		}
		for _, err := range errs {
			if !errors.Is(err, dbadapter.ErrCorrupt) && !errors.Is(err, dbadapter.ErrNotFound) {
				t.Errorf("%s: %v", damage, err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormat opens what other programs have written.
func TestFormat(t *testing.T) {
	server := pgserver.Start(t)
	if err := open(t, server, pgdb.Options{Schema: "later"}).Close(); err != nil {
		t.Fatal(err)
	}
	sql(t, server, `UPDATE later.store SET format = format + 1`)
	_, err := pgdb.Open(t.Context(), server.URL(), pgdb.Options{Schema: "later"})
	if !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a later format: %v", err)
	}
	sql(t, server, `CREATE SCHEMA other; CREATE TABLE other.store (id integer); INSERT INTO other.store VALUES (1)`)
	_, err = pgdb.Open(t.Context(), server.URL(), pgdb.Options{Schema: "other"})
	if !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("another program's tables: %v", err)
	}
}

// TestUnsafeServer is refused.
func TestUnsafeServer(t *testing.T) {
	server := pgserver.Start(t, "fsync=off")
	if _, err := pgdb.Open(t.Context(), server.URL(), pgdb.Options{}); err == nil {
		t.Error("a server that acknowledges what it has not stored is taken")
	}
}

// TestFolder ties folders to schemas: each to its own, and to no other.
func TestFolder(t *testing.T) {
	server := pgserver.Start(t)
	a, b := t.TempDir(), t.TempDir()
	try := func(folder, schema string) error {
		s, err := pgdb.Open(t.Context(), server.URL(), pgdb.Options{Schema: schema, Folder: folder})
		if err != nil {
			return err
		}
		namespaceOf(t, s)
		return s.Close()
	}
	for range 2 {
		if err := try(a, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if name, err := kvstore.EngineOf(a); name != pgdb.Name || err != nil {
		t.Errorf("the folder's stamp says %q, %v", name, err)
	}
	for what, err := range map[string]error{
		"the folder with an empty schema":        try(a, "b"),
		"another folder with the schema":         try(b, "a"),
		"a folder of a store of Badger's":        badgerFolder(t, try),
		"a store of Badger's in the folder":      openBadger(a),
		"a folder that has lost the schema's id": withoutID(t, a, try),
	} {
		if !errors.Is(err, dbadapter.ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStampDamaged finds a folder whose stamp is damaged, and does as the error says.
func TestStampDamaged(t *testing.T) {
	server, dir := pgserver.Start(t), t.TempDir()
	try := func() error {
		s, err := pgdb.Open(t.Context(), server.URL(), pgdb.Options{Schema: "stamped", Folder: dir})
		if err != nil {
			return err
		}
		return s.Close()
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(dir, "FORMAT")
	good, err := os.ReadFile(stamp)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 1 << (i % 8)
		if err := os.WriteFile(stamp, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := try(); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("the stamp %q: %v", flipped, err)
		}
	}
	if err := os.WriteFile(stamp, []byte("syncd store over postgres, disk format 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Errorf("the stamp of a program that wrote no checksum: %v", err)
	}
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Error(err)
	}
	if again, err := os.ReadFile(stamp); err != nil || !bytes.Equal(again, good) {
		t.Errorf("the stamp is %q, %v; want %q", again, err, good)
	}
}

func openBadger(dir string) error {
	s, err := ondisk.Open(dir, ondisk.Badger, ondisk.Options{})
	if err == nil {
		err = s.Close()
	}
	return err
}

func badgerFolder(t *testing.T, try func(folder, schema string) error) error {
	dir := t.TempDir()
	if err := openBadger(dir); err != nil {
		t.Fatal(err)
	}
	return try(dir, "fresh")
}

func withoutID(t *testing.T, dir string, try func(folder, schema string) error) error {
	if err := os.Remove(filepath.Join(dir, "SCHEMA")); err != nil {
		t.Fatal(err)
	}
	return try(dir, "fresh")
}
