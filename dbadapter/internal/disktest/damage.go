package disktest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var damageSamples = flag.Int("damages", 16, "how many bytes of each large file the damage tests flip; each run draws others")

// damage is one way to harm a folder.
type damage struct {
	what string
	do   func(dir string) error
}

// damages are flips of bytes of each file, and files cut short or missing. Of a small
// file every byte is flipped, of a large one samples.
func damages(t *testing.T, dir string, random *rand.Rand) []damage {
	samples := *damageSamples
	small := max(samples, 64) // bytes of a file of which every one is flipped
	if raceDetector {
		samples = min(samples, 2)
		small = samples
	}
	var all []damage
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := f.Name()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(b, "\x00"))
		if used == 0 || name == "SYNCD.LOCK" || name == "LOCK" {
			continue
		}
		flip := func(at int) {
			bit := byte(1) << random.IntN(8)
			all = append(all, damage{fmt.Sprintf("flip bit %#x of byte %d of %s (of %d)", bit, at, name, used), func(dir string) error {
				return flipByte(filepath.Join(dir, name), at, bit)
			}})
		}
		if used <= small {
			for at := range used {
				flip(at)
			}
		} else {
			for range samples {
				flip(random.IntN(used))
			}
			flip(max(0, used-1-random.IntN(24))) // the end is read first
		}
	}
	return all
}

func flipByte(path string, at int, bit byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], int64(at)); err != nil {
		return err
	}
	b[0] ^= bit
	_, err = f.WriteAt(b[:], int64(at))
	return err
}

// copyStore copies a folder; the long tails of zeros stay holes.
func copyStore(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, d.Name())
		if err := os.WriteFile(target, bytes.TrimRight(b, "\x00"), 0o600); err != nil {
			return err
		}
		return os.Truncate(target, int64(len(b)))
	})
}

func damageSeed(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// noDamage leaves a folder as it is.
const noDamage = "no damage"

// run does each damage to a copy of a folder and examines it. torn: the last commit may be
// missing, and nothing else, without an error that says so.
func run(t *testing.T, dir string, damages []damage, torn bool) {
	e := &examiner{t: t}
	defer e.stop()
	found, harmless, last := 0, 0, 0
	for _, d := range damages {
		to := t.TempDir()
		if err := errors.Join(copyStore(dir, to), d.do(to)); err != nil {
			t.Fatal(err)
		}
		switch answer := e.ask(to); {
		case answer == "missing 0":
			harmless++
		case torn && answer == fmt.Sprint("missing ", damageBatch):
			last++
			t.Logf("%s: the last commit is missing", d.what)
		case strings.HasPrefix(answer, "error WRONG"), strings.HasPrefix(answer, "missing"), d.what == noDamage:
			t.Errorf("%s: %s", d.what, answer)
		default:
			found++
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d damages: %d found, %d without effect, %d took the last commit away", len(damages), found, harmless, last)
	if found == 0 {
		t.Error("none of them was found")
	}
}

// TestDamageClosed harms a store that was closed in order: nothing may be wrong,
// and nothing missing, without an error that says so.
func TestDamageClosed(t *testing.T, h Harness) {
	dir := t.TempDir()
	for round := range damageRounds {
		if err := h.writeDamageStore(t, dir, round).Close(); err != nil {
			t.Fatal(err)
		}
	}
	all := damages(t, dir, damageSeed(t))
	for _, pattern := range append([]string{"FORMAT", "CLEAN"}, h.Files...) {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range files {
			name := filepath.Base(path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int64{0, 1, info.Size() / 2, info.Size() - 1} {
				if size < 0 || size >= info.Size() {
					continue
				}
				all = append(all, damage{fmt.Sprintf("cut %s to %d of %d bytes", name, size, info.Size()), func(dir string) error {
					return os.Truncate(filepath.Join(dir, name), size)
				}})
			}
			all = append(all, damage{"remove " + name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }})
		}
	}
	run(t, dir, all, false)
}

// TestDamageCrashed harms a store whose process was killed: its last commits
// stand in a log. A commit may be missing only if it was the last.
func TestDamageCrashed(t *testing.T, h Harness) {
	dir, crashed := t.TempDir(), t.TempDir()
	for round := range damageRounds - 1 {
		if err := h.writeDamageStore(t, dir, round).Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := h.writeDamageStore(t, dir, damageRounds-1)
	if err := copyStore(dir, crashed); err != nil { // as kill -9 would leave it
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if h.Shorten != nil {
		h.Shorten(t, crashed)
	}
	all := damages(t, crashed, damageSeed(t))
	all = append(all, damage{noDamage, func(string) error { return nil }})
	run(t, crashed, all, true)
}
