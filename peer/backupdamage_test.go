package peer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

// TestBackupDamage flips a bit of each file of a folder of backups, cuts it and
// takes it away: VerifyBackups and Restore name the file, and Restore leaves
// nothing behind.
func TestBackupDamage(t *testing.T) {
	t.Parallel()
	n := open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}})
	ns := create(t, n, peer.Policy{})
	to := filepath.Join(t.TempDir(), "backups")
	for _, key := range []string{"one", "two", "three"} {
		put(t, ns, key, strings.Repeat("v", 1000))
		backUp(t, n, to)
	}
	shut(t, n)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	damaged := 0
	refused := func(path, how string) {
		t.Helper()
		damaged++
		_, err := offline.VerifyBackups(t.Context(), to, nil)
		if !errors.Is(err, offline.ErrBackupDamaged) || !errors.Is(err, peer.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("seed %d, %s %s: verified: %v", seed, how, path, err)
		}
		// Restoring reads of the generations before only what it needs.
		if name, err := filepath.Rel(to, path); err != nil || strings.Contains(name, "/node/") && !strings.HasPrefix(name, "000003") {
			return
		}
		dir := filepath.Join(t.TempDir(), "restored")
		if _, err := offline.Restore(t.Context(), to, dir, offline.RestoreOptions{}); !errors.Is(err, offline.ErrBackupDamaged) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("seed %d, %s %s: restored: %v", seed, how, path, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s %s: the restore left %v", how, path, err)
		}
	}
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		good, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		write := func(b []byte) {
			must(t, os.WriteFile(path, b, 0o600))
		}
		flipped := append([]byte(nil), good...)
		flipped[rng.IntN(len(flipped))] ^= 1 << rng.IntN(8)
		write(flipped)
		refused(path, "flipped")
		write(good[:rng.IntN(len(good))])
		refused(path, "cut")
		write(append(good[:len(good):len(good)], 'x'))
		refused(path, "lengthened")
		if err := os.Remove(path); err != nil {
			return err
		}
		refused(path, "removed")
		write(good)
		return nil
	})
	must(t, err)
	for _, gone := range []string{"000001", "000003"} {
		away := filepath.Join(t.TempDir(), "away")
		must(t, os.Rename(filepath.Join(to, gone), away))
		refused(filepath.Join(to, gone), "moved")
		must(t, os.Rename(away, filepath.Join(to, gone)))
	}
	if damaged < 50 {
		t.Errorf("%d kinds of damage", damaged)
	}
	restore(t, to, 0) // repaired, it is as before

	// What a backup that was cut short has left is no damage, and is cleared away.
	partial := filepath.Join(to, "000004.partial")
	must(t, os.CopyFS(partial, os.DirFS(filepath.Join(to, "000003"))))
	if _, err := offline.VerifyBackups(t.Context(), to, nil); err != nil {
		t.Error(err)
	}
	r := open(t, peer.Config{Dir: restore(t, to, 0), ListenAddrs: []string{}})
	if b := backUp(t, r, to); b.Generation != 4 || b.Base != 0 {
		t.Errorf("the restored node, which is not where its backups end, makes generation %d that goes on from %d", b.Generation, b.Base)
	}
	if b := backUp(t, r, to); b.Base != 4 {
		t.Errorf("generation %d goes on from %d", b.Generation, b.Base)
	}
	if _, err := os.Stat(partial); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the partial generation is there still")
	}
}

// TestBackupOfAnotherFormat: a backup whose files are whole, and which this program cannot
// restore, is no good one: the error names both formats, and who can restore it.
func TestBackupOfAnotherFormat(t *testing.T) {
	t.Parallel()
	n := open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}})
	put(t, create(t, n, peer.Policy{}), "k", "v")
	good := filepath.Join(t.TempDir(), "good")
	backUp(t, n, good)
	from, err := backup.Open(good)
	must(t, err)
	m, err := from.Manifest(1)
	must(t, err)
	for _, format := range []int{ondisk.Format - 1, ondisk.Format + 1} {
		dir := filepath.Join(t.TempDir(), "backups")
		folder, err := backup.Create(dir, m.Node)
		must(t, err)
		draft, err := folder.Begin()
		must(t, err)
		for _, f := range m.Files {
			b, err := os.ReadFile(from.File(1, f.Name))
			if f.Name == backup.StoreFile {
				_, rest, _ := bytes.Cut(b, []byte("\n"))
				b = append(fmt.Appendf(nil, "syncd store copy, disk format %d\n", format), rest...)
			}
			must(t, errors.Join(err, draft.Write(f.Name, b)))
		}
		must(t, draft.Commit(&backup.Manifest{Program: "syncd v0.1.2", Taken: m.Taken, Namespaces: m.Namespaces, Mark: m.Mark}))
		_, err = offline.VerifyBackups(t.Context(), dir, nil)
		if !errors.Is(err, dbadapter.ErrFormat) {
			t.Fatalf("format %d: %v", format, err)
		}
		for _, says := range []string{"backup 1, which syncd v0.1.2 has made", fmt.Sprintf("disk format %d", format), fmt.Sprintf("disk format %d:", ondisk.Format)} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("format %d: %v; want %q", format, err, says)
			}
		}
		if _, err := offline.Restore(t.Context(), dir, filepath.Join(t.TempDir(), "r"), offline.RestoreOptions{}); !errors.Is(err, dbadapter.ErrFormat) {
			t.Errorf("format %d is restored: %v", format, err)
		}
	}
}
