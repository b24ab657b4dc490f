package disktest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/internal/child"
)

// The damaged stores hold damageRecords records. Each is written in damageRounds rounds
// and several tables, so that there is an older record to show under each newer one.
// Their indices are weak: buckets hold several keys. Each round sets one further record
// aside and collects another, so that there is a removed one, too.
const (
	damageRecords = 120
	damageRounds  = 3
	damageBatch   = 10
)

// damageHasher makes 64 indices.
func damageHasher() dbadapter.Hasher {
	return storetest.Weak(dbadapter.NewHasher(dbadapter.Secret{5}), 6)
}

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

// damageBatches are the batches of a round.
func damageBatches(round int) (batches [][]dbadapter.Write) {
	aside, gone := damageWrite(damageRecords, round), damageWrite(damageRecords+1, round)
	batches = append(batches, []dbadapter.Write{aside, gone})
	aside.Action, gone.Action = dbadapter.SetAside, dbadapter.Collect
	batches = append(batches, []dbadapter.Write{aside, gone})
	for i := 0; i < damageRecords; i += damageBatch {
		var writes []dbadapter.Write
		for j := i; j < i+damageBatch; j++ {
			writes = append(writes, damageWrite(j, round))
		}
		batches = append(batches, writes)
	}
	return batches
}

// damageNamespace opens the namespace and applies batches to it.
func damageNamespace(s dbadapter.Store, batches [][]dbadapter.Write) (dbadapter.Namespace, error) {
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, damageHasher(), nil)
	for _, writes := range batches {
		if err == nil {
			_, err = n.Apply(context.Background(), writes)
		}
	}
	return n, err
}

// writeDamageStore writes one round; it returns the open store.
func (h Harness) writeDamageStore(t *testing.T, dir string, round int) dbadapter.Backuper {
	t.Helper()
	s, err := h.Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := damageNamespace(s, damageBatches(round)); err != nil {
		t.Fatal(err)
	}
	return s
}

// examine opens a store and compares what it says with what a store in memory says, to which
// the same was written. It returns how many of the last records are missing, of the last
// batch. With an error that names damage, a damaged store may answer any question. Anything
// else is an error that begins with "WRONG".
func (h Harness) examine(dir string) (missing int, err error) {
	s, err := h.Open(dir, Options{})
	if err != nil {
		return 0, named(err)
	}
	defer s.Close()
	n, err := damageNamespace(s, nil)
	if err != nil {
		return 0, named(err)
	}
	got, failed := answers(n)
	if failed != nil && strings.Contains(failed.Error(), "WRONG") {
		return 0, fmt.Errorf("WRONG: %w", failed)
	}
	var batches [][]dbadapter.Write
	for round := range damageRounds {
		batches = append(batches, damageBatches(round)...)
	}
	var wrong string
	for _, less := range []int{0, 1} { // batches
		m := memdb.New(memdb.Options{})
		n, err := damageNamespace(m, batches[:len(batches)-less])
		if err != nil {
			return 0, err
		}
		want, _ := answers(n)
		other := difference(got, want)
		if other == "" {
			return less * damageBatch, failed
		}
		wrong += fmt.Sprintf(" (without %d batches) %s;", less, other)
	}
	return 0, fmt.Errorf("WRONG:%s", wrong)
}

// answers asks a namespace in every way what it holds, and returns the answers by question.
// A question that is answered with an error has no other answer; failed is all such errors.
func answers(n dbadapter.Namespace) (got map[string]string, failed error) {
	s, err := n.Snapshot()
	if err != nil {
		return nil, named(err)
	}
	defer s.Close()
	ctx, h, got := context.Background(), damageHasher(), map[string]string{}
	note := func(question string, answer any, err error) {
		if err != nil {
			failed = errors.Join(failed, named(err))
		} else {
			if k, ok := answer.(dbadapter.Kept); ok {
				k.At = time.Time{} // by the clock of the machine
				answer = k
			}
			got[question] = fmt.Sprint(answer)
		}
	}
	for i := range damageRecords + 2 {
		key := damageWrite(i, 0).Record.Key
		r, err := s.Get(key)
		if errors.Is(err, dbadapter.ErrNotFound) {
			err = nil
		}
		note(fmt.Sprint("Get ", i), r, err)
		index, sums := h.Index(key), make([]dbadapter.Checksum, 1)
		bucket, err := s.Bucket(index)
		note(fmt.Sprint("Bucket ", index), bucket, err)
		err = s.Lookup([]dbadapter.Index{index}, sums)
		note(fmt.Sprint("Lookup ", index), sums, err)
	}
	each(note, "Scan", s.Scan(ctx, nil, nil), func(r dbadapter.Hashed) any { return r.Key })
	each(note, "Pairs", s.Pairs(ctx, 0, 0), func(p dbadapter.Pair) any { return p.Index })
	each(note, "Changes", n.Changes(ctx, 0), func(c dbadapter.Change) any { return c.Seq })
	each(note, "Kept", n.Kept(ctx), func(k dbadapter.Kept) any { return k.Seq })
	return got, failed
}

// each notes what a sequence yields, each by its place, and how many there are. One that
// lacks something says so at its end.
func each[T any](note func(string, any, error), question string, seq iter.Seq2[T, error], place func(T) any) {
	count := 0
	for v, err := range seq {
		note(fmt.Sprint(question, " ", place(v)), v, err)
		if err != nil {
			return
		}
		count++
	}
	note(question, count, nil)
}

// difference describes one answer in got that want does not have. It is empty where all agree.
func difference(got, want map[string]string) string {
	for question, answer := range got {
		if answer != want[question] {
			return fmt.Sprintf("%s gives %.100s, want %.100s", question, answer, want[question])
		}
	}
	return ""
}

func named(err error) error {
	if errors.Is(err, dbadapter.ErrCorrupt) || errors.Is(err, dbadapter.ErrFormat) {
		return err
	}
	return fmt.Errorf("WRONG: an error without a name: %w", err)
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
		missing, err := h.examine(lines.Text())
		if err != nil {
			fmt.Printf("error %.2000s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("missing %d\n", missing)
		}
	}
	return true
}

// examiner is the parent's end of the child.
type examiner struct {
	t     *testing.T
	child *child.Process
}

func (e *examiner) ask(dir string) string {
	if e.child == nil {
		e.child = child.Start(e.t, "None", childVariable+"=examine")
	}
	fmt.Fprintln(e.child.In, dir)
	if !e.child.Lines.Scan() {
		e.stop()
		return "error WRONG: the process died"
	}
	return e.child.Lines.Text()
}

func (e *examiner) stop() {
	if e.child != nil {
		e.child.Kill()
		e.child = nil
	}
}
