package badgerdb_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

func damageHasher() dbadapter.Hasher {
	return storetest.Weak(dbadapter.NewHasher(dbadapter.Secret{5}), 6)
}

func damageWrite(i, round int) dbadapter.Write {
	w := benchWrite(i)
	w.Record.Version.Clock += dbadapter.Timestamp(round) << 32
	w.Record.Value = bytes.Repeat([]byte{byte('a' + round)}, 40+i)
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
		if !equal(r, w.Record.Record) {
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
		if w, ok := want[string(r.Key)]; ok && !equal(r.Record, w) {
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
		var whole dbadapter.Bucket
		for i := range bucket {
			if !equal(bucket[i].Record, want[string(bucket[i].Key)]) {
				return 0, fmt.Errorf("WRONG: Bucket gives %+v", bucket[i])
			}
			whole.Add(&bucket[i])
		}
		if sum := whole.Pair(h).Checksum; sum != sums[0] || sum != pairs[index] {
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
