package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

func commit(t testing.TB, f *Folder, base int, content string) *Manifest {
	t.Helper()
	d, err := f.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Write(StoreFile, []byte(content)), d.Write(NodeDir+"/a/b", []byte("file"))); err != nil {
		t.Fatal(err)
	}
	m := &Manifest{Program: "test", Base: base, Taken: time.Unix(1_780_000_000, 0).UTC(), Mark: []byte("mark")}
	if err := d.Commit(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCrash stops at each point of the making of a generation: the generations
// before it are whole, and the next one takes its place.
func TestCrash(t *testing.T) {
	for _, stop := range []string{"begun", "a file", "a file that is not closed", "no manifest", "manifest", "named", "index half written"} {
		t.Run(stop, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backups")
			f, err := Create(path, "node")
			if err != nil {
				t.Fatal(err)
			}
			commit(t, f, 0, "one")
			d, err := f.Begin()
			if err != nil {
				t.Fatal(err)
			}
			latest := 1
			switch stop {
			case "a file":
				err = d.Write(StoreFile, []byte("two"))
			case "a file that is not closed":
				var w *DraftFile
				if w, err = d.Create(StoreFile); err == nil {
					_, err = w.Write([]byte("tw"))
				}
			case "manifest":
				err = errors.Join(d.Write(StoreFile, []byte("two")), os.WriteFile(filepath.Join(d.path, manifestFile), []byte("{"), 0o600))
			case "named", "index half written":
				err = errors.Join(d.Write(StoreFile, []byte("two")), d.Commit(&Manifest{Base: 1}))
				f.Latest = 1
				err = errors.Join(err, f.writeIndex())
				latest = 2
				if stop == "index half written" {
					err = errors.Join(err, os.WriteFile(filepath.Join(path, indexFile+".tmp"), []byte("{"), 0o600))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := Open(path)
			if err != nil || again.Latest != latest || len(again.Generations) != latest {
				t.Fatalf("%+v, %v", again, err)
			}
			line, err := again.Line(latest)
			if err != nil || len(line) != latest {
				t.Fatal(line, err)
			}
			for _, m := range line {
				if err := again.Verify(t.Context(), m, nil); err != nil {
					t.Error(err)
				}
			}
			again, err = Create(path, "node")
			if err != nil {
				t.Fatal(err)
			}
			if m := commit(t, again, latest, "next"); m.Generation != latest+1 {
				t.Errorf("generation %d", m.Generation)
			}
			if entries, err := os.ReadDir(path); err != nil || len(entries) != latest+2 {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

// TestOlderGenerationsMayGo: what a line does not need may be deleted by hand.
func TestOlderGenerationsMayGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backups")
	f, err := Create(path, "node")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, f, 0, "one")
	commit(t, f, 1, "two")
	commit(t, f, 0, "three")
	commit(t, f, 3, "four")
	for _, g := range []int{1, 2} {
		if err := os.RemoveAll(f.generation(g)); err != nil {
			t.Fatal(err)
		}
	}
	if f, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if line, err := f.Line(4); err != nil || len(line) != 2 || line[0].Generation != 3 {
		t.Errorf("%v, %v", line, err)
	}
	if err := os.RemoveAll(f.generation(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Line(4); !errors.Is(err, ErrDamaged) || !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Error(err)
	}
}

func TestNewerFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backups")
	f, err := Create(path, "node")
	if err != nil {
		t.Fatal(err)
	}
	b, err := encode(&index{Format: Format + 1, Node: f.Node})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, indexFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, dbadapter.ErrFormat) {
		t.Error(err)
	}
}

// FuzzManifest: bytes that are accepted are what encode writes, and name no file
// outside of the folder.
func FuzzManifest(f *testing.F) {
	path := filepath.Join(f.TempDir(), "backups")
	folder, err := Create(path, "node")
	if err != nil {
		f.Fatal(err)
	}
	commit(f, folder, 0, "one")
	file := folder.File(1, manifestFile)
	good, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, read, err := folder.manifest(1)
		if err != nil {
			return
		}
		again, err := encode(m)
		if err != nil || !bytes.Equal(again, read) {
			t.Errorf("%q is read as %q, %v", b, again, err)
		}
		for _, one := range m.Files {
			if !filepath.IsLocal(one.Name) {
				t.Errorf("the file %q", one.Name)
			}
		}
	})
}
