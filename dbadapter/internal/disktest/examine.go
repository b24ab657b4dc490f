package disktest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// The damaged stores hold damageRecords records. Each is written in damageRounds rounds
// and several tables, so that there is an older record to show under each newer one.
// Their indices are weak: buckets hold several keys. Each round sets one further record
// aside and collects another, so that there is a removed one, too.
const (
	damageRecords = 120
	damageRounds  = 3
)

func damageHasher() dbadapter.Hasher { return weak{dbadapter.NewHasher(dbadapter.Secret{5})} }

// weak is a hasher of 64 indices.
type weak struct{ dbadapter.Hasher }

func (w weak) Index(key []byte) dbadapter.Index { return w.Hasher.Index(key)&63 + 1 }

func damageWrite(i, round int) dbadapter.Write {
	key := make([]byte, 32)
	_, _ = rand.NewChaCha8([32]byte{1: byte(i), 2: byte(i >> 8)}).Read(key) // never fails
	var w dbadapter.Write
	w.Record.Record = dbadapter.Record{
		Key: key, Value: bytes.Repeat([]byte{byte('a' + round)}, 40+i),
		Version: dbadapter.Version{
			Clock:  dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000+int64(i))) + dbadapter.Timestamp(round)<<32,
			Writer: 1, Incarnation: 1,
		},
	}
	if i%3 == 0 {
		w.Record.Signature = bytes.Repeat([]byte{byte(i), byte(round)}, dbadapter.SignatureSize/2)
	}
	if i%7 == 0 {
		w.Record.Value, w.Record.Deleted = nil, true
	}
	w.Record = hashed(damageHasher(), w.Record.Record)
	return w
}

// writeDamageStore writes one round; it returns the open store.
func (h Harness) writeDamageStore(t *testing.T, dir string, round int) dbadapter.Backuper {
	t.Helper()
	s, err := h.Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, damageHasher(), nil)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(writes ...dbadapter.Write) {
		t.Helper()
		if _, err := n.Apply(context.Background(), writes); err != nil {
			t.Fatal(err)
		}
	}
	aside, gone := damageWrite(damageRecords, round), damageWrite(damageRecords+1, round)
	apply(aside, gone)
	aside.Action, gone.Action = dbadapter.SetAside, dbadapter.Collect
	apply(aside, gone)
	for i := 0; i < damageRecords; i += 10 {
		var writes []dbadapter.Write
		for j := i; j < i+10; j++ {
			writes = append(writes, damageWrite(j, round))
		}
		apply(writes...)
	}
	return s
}

// examination compares a store with what was written. It keeps the first named error,
// with which a damaged store may answer. Anything else that is not as it was written is
// an error that begins with "WRONG".
type examination struct {
	namespace dbadapter.Namespace
	snapshot  dbadapter.Snapshot
	want      map[string]dbadapter.Record
	missing   int // commits of the last round that are not there
	failed    error
}

// examine opens a store and compares what it says with what was written. It
// returns how many of the last commits are missing, a named error, or an error
// that begins with "WRONG".
func (h Harness) examine(dir string, o Options) (missing int, err error) {
	s, err := h.Open(dir, o)
	if err != nil {
		return 0, named(err)
	}
	defer s.Close()
	e := &examination{want: make(map[string]dbadapter.Record)}
	if e.namespace, err = s.Namespace(context.Background(), dbadapter.NamespaceID{1}, damageHasher(), nil); err != nil {
		return 0, named(err)
	}
	if e.snapshot, err = e.namespace.Snapshot(); err != nil {
		return 0, named(err)
	}
	for _, step := range []func() error{e.records, e.scan, e.buckets, e.log, e.kept} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return e.missing, e.failed
}

func named(err error) error {
	if errors.Is(err, dbadapter.ErrCorrupt) || errors.Is(err, dbadapter.ErrFormat) {
		return err
	}
	return fmt.Errorf("WRONG: an error without a name: %w", err)
}

// fail notes an error, and reports whether there is one.
func (e *examination) fail(err error) bool {
	if err != nil && e.failed == nil {
		e.failed = named(err)
	}
	return err != nil
}

// records reads each record. Each commit writes ten; those that are of the round
// before the last one are missing from the last.
func (e *examination) records() error {
	for i := range damageRecords {
		w := damageWrite(i, damageRounds-1)
		r, err := e.snapshot.Get(w.Record.Key)
		if errors.Is(err, dbadapter.ErrNotFound) {
			return fmt.Errorf("WRONG: record %d is not there", i)
		}
		if e.fail(err) {
			continue
		}
		if old := damageWrite(i, damageRounds-2); r.Version == old.Record.Version {
			e.missing++
			w = old
		}
		if !equal(r, w.Record.Record) {
			return fmt.Errorf("WRONG: record %d is %+v", i, r)
		}
		e.want[string(r.Key)] = r
	}
	return nil
}

func (e *examination) scan() error {
	scanned := 0
	for r, err := range e.snapshot.Scan(context.Background(), nil, nil) {
		if e.fail(err) {
			return e.failed
		}
		if w, ok := e.want[string(r.Key)]; ok && !equal(r.Record, w) {
			return fmt.Errorf("WRONG: Scan gives %+v", r)
		}
		scanned++
	}
	if scanned != damageRecords {
		return fmt.Errorf("WRONG: Scan gives %d records", scanned)
	}
	return e.failed
}

func (e *examination) buckets() error {
	pairs := make(map[dbadapter.Index]dbadapter.Checksum)
	for p, err := range e.snapshot.Pairs(context.Background(), 0, 0) {
		if e.fail(err) {
			return e.failed
		}
		pairs[p.Index] = p.Checksum
	}
	h := damageHasher()
	sums := make([]dbadapter.Checksum, 1)
	seen := make(map[dbadapter.Index]bool)
	for _, r := range e.want {
		index := h.Index(r.Key)
		seen[index] = true
		bucket, err := e.snapshot.Bucket(index)
		if e.fail(err) || e.fail(e.snapshot.Lookup([]dbadapter.Index{index}, sums)) {
			return e.failed
		}
		var whole dbadapter.Bucket
		for i := range bucket {
			if !equal(bucket[i].Record, e.want[string(bucket[i].Key)]) {
				return fmt.Errorf("WRONG: Bucket gives %+v", bucket[i])
			}
			whole.Add(&bucket[i])
		}
		if sum := whole.Pair(h).Checksum; sum != sums[0] || sum != pairs[index] {
			return fmt.Errorf("WRONG: the checksums under %d are %d and %d, not %d", index, sums[0], pairs[index], sum)
		}
	}
	if len(pairs) != len(seen) {
		return fmt.Errorf("WRONG: %d pairs, not %d", len(pairs), len(seen))
	}
	return nil
}

func (e *examination) kept() error {
	round := 0
	for k, err := range e.namespace.Kept(context.Background()) {
		if e.fail(err) {
			return e.failed
		}
		if w := damageWrite(damageRecords, round); !equal(k.Record, w.Record.Record) || k.Why != dbadapter.KeptSetAside {
			return fmt.Errorf("WRONG: the kept log has %+v", k)
		}
		round++
	}
	if round != damageRounds {
		return fmt.Errorf("WRONG: the kept log has %d entries", round)
	}
	return nil
}

func (e *examination) log() error {
	changes := uint64(0)
	for c, err := range e.namespace.Changes(context.Background(), 0) {
		if e.fail(err) {
			return e.failed
		}
		if changes++; c.Seq != changes {
			return fmt.Errorf("WRONG: the log gives change %d after %d", c.Seq, changes-1)
		}
	}
	if changes != e.snapshot.Seq() {
		return fmt.Errorf("WRONG: the log ends with %d, not %d", changes, e.snapshot.Seq())
	}
	return nil
}

func equal(a, b dbadapter.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && bytes.Equal(a.Signature, b.Signature) &&
		a.Version == b.Version && a.Deleted == b.Deleted
}

// childVariable says what a child process of a test is to do.
const childVariable = "SYNCD_TEST_CHILD"

// examineAsChild is the child process: it examines the folders named on its standard
// input. It reports whether this process is one. An engine may end the process over
// some kinds of damage.
func examineAsChild(h Harness) bool {
	if os.Getenv(childVariable) != "examine" {
		return false
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		dir, trust := strings.CutPrefix(lines.Text(), "trust ")
		missing, err := h.examine(dir, Options{Trust: trust})
		if err != nil {
			fmt.Printf("error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("missing %d\n", missing)
		}
	}
	return true
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
		_ = e.child.Wait() // how it ends is not asked
		e.child = nil
	}
}
