package badgerdb_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// The damaged stores hold damageRecords records, each written in damageRounds
// rounds and several tables, so that there is an older record to show under each
// newer one. Their indices are weak: buckets hold several keys.
const (
	damageRecords = 120
	damageRounds  = 3
)

var damageSamples = flag.Int("damages", 64, "how many bytes of each large file the damage tests flip")

func damageHasher() dbadapter.Hasher {
	return storetest.Weak(dbadapter.NewHasher(dbadapter.Secret{5}), 6)
}

func damageWrite(i, round int) dbadapter.Write {
	w := benchWrite(i)
	w.Record.Version.Clock += dbadapter.Clock(round) << 32
	w.Record.Value = bytes.Repeat([]byte{byte('a' + round)}, 40+i)
	if i%3 == 0 {
		w.Record.Signature = bytes.Repeat([]byte{byte(i), byte(round)}, dbadapter.SignatureSize/2)
	}
	if i%7 == 0 {
		w.Record.Value, w.Record.Deleted = nil, true
	}
	return w
}

// writeDamageStore writes one round; it returns the open store.
func writeDamageStore(t *testing.T, dir string, round int) *badgerdb.Store {
	t.Helper()
	s, err := badgerdb.Open(dir, badgerdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, damageHasher(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < damageRecords; i += 10 {
		var writes []dbadapter.Write
		for j := i; j < i+10; j++ {
			writes = append(writes, damageWrite(j, round))
		}
		if _, err := n.Apply(context.Background(), writes); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// examine opens a store and compares what it says with what was written. It
// returns how many of the last commits are missing, a named error, or an error
// that begins with "WRONG".
func examine(dir string, o badgerdb.Options) (missing int, err error) {
	named := func(err error) error {
		if errors.Is(err, dbadapter.ErrCorrupt) || errors.Is(err, dbadapter.ErrFormat) {
			return err
		}
		return fmt.Errorf("WRONG: an error without a name: %w", err)
	}
	s, err := badgerdb.Open(dir, o)
	if err != nil {
		return 0, named(err)
	}
	defer s.Close()
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, damageHasher(), nil)
	if err != nil {
		return 0, named(err)
	}
	v, err := n.Snapshot()
	if err != nil {
		return 0, named(err)
	}
	var failed error
	fail := func(err error) bool {
		if err != nil && failed == nil {
			failed = named(err)
		}
		return err != nil
	}
	// Each commit writes ten records; those of the last round that are older
	// than the last round's are missing.
	want := make(map[string]dbadapter.Record)
	for i := range damageRecords {
		w := damageWrite(i, damageRounds-1)
		r, err := v.Get(w.Record.Key)
		if errors.Is(err, dbadapter.ErrNotFound) {
			return 0, fmt.Errorf("WRONG: record %d is not there", i)
		}
		if fail(err) {
			continue
		}
		if old := damageWrite(i, damageRounds-2); r.Version == old.Record.Version {
			missing++
			w = old
		}
		if !equal(r, w.Record) {
			return 0, fmt.Errorf("WRONG: record %d is %+v", i, r)
		}
		want[string(r.Key)] = r
	}
	scanned := 0
	scanFailed := false
	for r, err := range v.Scan(context.Background(), nil, nil) {
		if fail(err) {
			scanFailed = true
			break
		}
		if w, ok := want[string(r.Key)]; ok && !equal(r, w) {
			return 0, fmt.Errorf("WRONG: Scan gives %+v", r)
		}
		scanned++
	}
	if !scanFailed && scanned != damageRecords {
		return 0, fmt.Errorf("WRONG: Scan gives %d records", scanned)
	}
	if failed != nil {
		return 0, failed
	}
	h := damageHasher()
	pairs := make(map[dbadapter.Index]dbadapter.Checksum)
	for p, err := range v.Pairs(context.Background()) {
		if fail(err) {
			return 0, failed
		}
		pairs[p.Index] = p.Checksum
	}
	sums := make([]dbadapter.Checksum, 1)
	seen := make(map[dbadapter.Index]bool)
	for _, r := range want {
		index := h.Index(r.Key)
		seen[index] = true
		bucket, err := v.Bucket(index)
		if fail(err) || fail(v.Lookup([]dbadapter.Index{index}, sums)) {
			return 0, failed
		}
		var digests []dbadapter.Digest
		var latest dbadapter.Clock
		for i := range bucket {
			if !equal(bucket[i], want[string(bucket[i].Key)]) {
				return 0, fmt.Errorf("WRONG: Bucket gives %+v", bucket[i])
			}
			digests = append(digests, h.Digest(&bucket[i]))
			latest = max(latest, bucket[i].Version.Clock)
		}
		if sum := h.Checksum(latest, digests); sum != sums[0] || sum != pairs[index] {
			return 0, fmt.Errorf("WRONG: the checksums under %d are %d and %d, not %d", index, sums[0], pairs[index], sum)
		}
	}
	if len(pairs) != len(seen) {
		return 0, fmt.Errorf("WRONG: %d pairs, not %d", len(pairs), len(seen))
	}
	changes := uint64(0)
	for c, err := range n.Changes(context.Background(), 0) {
		if fail(err) {
			return 0, failed
		}
		if changes++; c.Seq != changes {
			return 0, fmt.Errorf("WRONG: the log gives change %d after %d", c.Seq, changes-1)
		}
	}
	if changes != v.Seq() {
		return 0, fmt.Errorf("WRONG: the log ends with %d, not %d", changes, v.Seq())
	}
	return missing, nil
}

func equal(a, b dbadapter.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && bytes.Equal(a.Signature, b.Signature) &&
		a.Version == b.Version && a.Deleted == b.Deleted
}

// examineStores is the child process: it examines the folders named on its
// standard input. Badger ends the process over some kinds of damage.
func examineStores() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		dir, trust := strings.CutPrefix(lines.Text(), "trust ")
		missing, err := examine(dir, badgerdb.Options{TrustFiles: trust})
		if err != nil {
			fmt.Printf("error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("missing %d\n", missing)
		}
	}
}

// examiner is the parent's end of the child.
type examiner struct {
	t     *testing.T
	child *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   bytes.Buffer
}

func (e *examiner) ask(question string) string {
	if e.child == nil {
		e.start()
	}
	fmt.Fprintln(e.in, question)
	answer, err := e.out.ReadString('\n')
	if err != nil {
		e.stop()
		return "error WRONG: the process died: " + e.log.String()
	}
	return strings.TrimSuffix(answer, "\n")
}

func (e *examiner) start() {
	self, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	e.child = exec.Command(self)
	e.child.Env = append(os.Environ(), childVariable+"=examine")
	e.log.Reset()
	e.child.Stderr = &e.log
	if e.in, err = e.child.StdinPipe(); err != nil {
		e.t.Fatal(err)
	}
	out, err := e.child.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	e.out = bufio.NewReader(out)
	if err := e.child.Start(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *examiner) stop() {
	if e.child != nil {
		e.in.Close()
		e.child.Wait()
		e.child = nil
	}
}

// damage is one way to harm a folder.
type damage struct {
	what string
	do   func(dir string) error
}

// damages are flips of bytes of each file, every one of a small file and samples
// of a large one, and files cut short or missing.
func damages(t *testing.T, dir string, samples int, random *rand.Rand) []damage {
	if raceDetector {
		samples = min(samples, 3)
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
		if used <= samples {
			for at := range used {
				flip(at)
			}
		} else {
			for range samples {
				flip(random.IntN(used))
			}
			flip(used - 1 - random.IntN(24)) // the end is read first
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

// shorten takes the most of the empty tail off the logs, which are 64 MiB long,
// and removes the empty value log; copies are then made fast.
func shorten(t *testing.T, dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.Truncate(path, int64(len(bytes.TrimRight(b, "\x00"))+1<<16))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	unused, _ := filepath.Glob(filepath.Join(dir, "*.vlog"))
	for _, path := range unused {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
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

// run does each damage to a copy of a folder and examines it, until judge says
// that it has seen enough.
func run(t *testing.T, dir, prefix string, damages []damage, judge func(what, answer string) (enough bool)) {
	e := &examiner{t: t}
	defer e.stop()
	for _, d := range damages {
		to, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(copyStore(dir, to), d.do(to)); err != nil {
			t.Fatal(err)
		}
		enough := judge(d.what, e.ask(prefix+to))
		os.RemoveAll(to)
		if enough {
			return
		}
	}
}

// TestDamageClosed harms a store that was closed in order: nothing may be wrong,
// and nothing missing, without an error that says so.
func TestDamageClosed(t *testing.T) {
	dir := t.TempDir()
	for round := range damageRounds {
		if err := writeDamageStore(t, dir, round).Close(); err != nil {
			t.Fatal(err)
		}
	}
	random := damageSeed(t)
	all := damages(t, dir, *damageSamples, random)
	for _, pattern := range []string{"*.sst", "MANIFEST", "KEYREGISTRY", "FORMAT", "CLEAN"} {
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
				all = append(all, damage{fmt.Sprintf("cut %s to %d of %d bytes", name, size, info.Size()), func(dir string) error {
					return os.Truncate(filepath.Join(dir, name), size)
				}})
			}
			all = append(all, damage{"remove " + name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }})
		}
	}
	found, harmless := 0, 0
	run(t, dir, "", all, func(what, answer string) bool {
		switch {
		case answer == "missing 0":
			harmless++
		case strings.HasPrefix(answer, "error WRONG"), strings.HasPrefix(answer, "missing"):
			t.Errorf("%s: %s", what, answer)
		default:
			found++
		}
		return false
	})
	t.Logf("%d damages: %d found, %d without effect", len(all), found, harmless)
	if found == 0 {
		t.Errorf("none of %d damages was found", len(all))
	}
}

// TestDamageTrusted shows that the probe is needed: without it, some flips in a
// table give wrong answers.
func TestDamageTrusted(t *testing.T) {
	if raceDetector {
		t.Skip("a hundred stores are opened, and the race detector makes each take seconds; it runs without")
	}
	dir := t.TempDir()
	for round := range damageRounds {
		if err := writeDamageStore(t, dir, round).Close(); err != nil {
			t.Fatal(err)
		}
	}
	wrong := false
	run(t, dir, "trust ", damages(t, dir, 400, damageSeed(t)), func(what, answer string) bool {
		if wrong = strings.HasPrefix(answer, "error WRONG") || strings.HasPrefix(answer, "missing") && answer != "missing 0"; wrong {
			t.Logf("%s: %.200s", what, answer)
		}
		return wrong
	})
	if !wrong {
		t.Error("no flip gave a wrong answer: the other damage tests prove nothing")
	}
}

// TestDamageCrashed harms a store whose process was killed: its last commits
// stand in a log. A commit may be missing only if it was the last.
func TestDamageCrashed(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	for round := range damageRounds - 1 {
		if err := writeDamageStore(t, dir, round).Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := writeDamageStore(t, dir, damageRounds-1)
	if err := copyStore(dir, crashed); err != nil { // as kill -9 would leave it
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	shorten(t, crashed)
	found, harmless, last := 0, 0, 0
	all := damages(t, crashed, *damageSamples, damageSeed(t))
	all = append(all, damage{"none", func(string) error { return nil }})
	run(t, crashed, "", all, func(what, answer string) bool {
		switch {
		case answer == "missing 0":
			harmless++
		case answer == "missing 10":
			last++
			t.Logf("%s: the last commit is missing", what)
		case strings.HasPrefix(answer, "error WRONG"), strings.HasPrefix(answer, "missing"), what == "none":
			t.Errorf("%s: %s", what, answer)
		default:
			found++
		}
		return false
	})
	t.Logf("%d damages: %d found, %d without effect, %d took the last commit away", len(all), found, harmless, last)
}
