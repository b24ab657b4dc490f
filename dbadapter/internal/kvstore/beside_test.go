package kvstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// many is a large batch: keys from one number on, written at a second.
func many(from, second int) (writes []dbadapter.Write) {
	for i := range queue.Large {
		writes = append(writes, write(fmt.Sprint(from+i), second)...)
	}
	return writes
}

type applied struct {
	outcomes []dbadapter.Outcome
	err      error
}

func applyLater(n *namespace, writes []dbadapter.Write) chan applied {
	done := make(chan applied, 1)
	go func() {
		outcomes, err := n.Apply(context.Background(), writes)
		done <- applied{outcomes, err}
	}()
	return done
}

// gated is an engine whose commits take an answer from a channel, once there is one.
type gated struct {
	kv.Engine
	gate *atomic.Pointer[chan error]
}

type gatedDB struct {
	kv.DB
	gate *atomic.Pointer[chan error]
}

type gatedTxn struct {
	kv.Txn
	gate *atomic.Pointer[chan error]
}

func (g gated) Open(dir string) (kv.DB, error) {
	db, err := g.Engine.Open(dir)
	return gatedDB{db, g.gate}, err
}

func (g gatedDB) Begin() kv.Txn { return gatedTxn{g.DB.Begin(), g.gate} }

func (t gatedTxn) Commit() error {
	if gate := t.gate.Load(); gate != nil {
		if err := <-*gate; err != nil {
			return err
		}
	}
	return t.Txn.Commit()
}

// behindGate opens a namespace whose commits each take an answer from a channel.
func behindGate(t *testing.T) (s *Store, n *namespace, gate chan error) {
	t.Helper()
	g := gated{engine, new(atomic.Pointer[chan error])}
	s, err := Open(t.TempDir(), g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	opened, err := s.Namespace(t.Context(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	gate = make(chan error, 1)
	g.gate.Store(&gate)
	return s, opened.(*namespace), gate
}

// landingOf waits until a transaction is prepared that is another one than before.
func landingOf(t *testing.T, s *Store, before *prepared) *prepared {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); runtime.Gosched() {
		if p := s.committer.landing.Load(); p != nil && p != before {
			return p
		}
	}
	t.Fatal("no transaction is prepared beside the one that lands")
	return nil
}

// TestPreparedBesideLanding: a large batch is decided while the one before lands, and
// against what that writes.
func TestPreparedBesideLanding(t *testing.T) {
	s, n, gate := behindGate(t)
	first := applyLater(n, many(0, 2))
	lands := landingOf(t, s, nil)
	older, newer := many(0, 1), many(queue.Large/2, 3) // of half of the newer keys, nothing is held
	second := applyLater(n, append(older, newer...))
	landingOf(t, s, lands)
	if n.Latest() != 0 {
		t.Error("a commit shows before it is on the disk")
	}
	gate <- nil
	if got := <-first; got.err != nil {
		t.Fatal(got.err)
	}
	gate <- nil
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	for i, o := range got.outcomes {
		want := dbadapter.Applied
		if i < len(older) {
			want = dbadapter.Dominated
		}
		if o.Result != want {
			t.Fatalf("write %d ends with %v, want %v", i, o, want)
		}
	}
	checkLog(t, n, 2*queue.Large)
}

// TestFailureOfTheOneBefore: where the disk fails a commit, the one that was prepared
// beside it fails, too, and so do all others.
func TestFailureOfTheOneBefore(t *testing.T) {
	broken := errors.New("the disk is broken")
	s, n, gate := behindGate(t)
	first := applyLater(n, many(0, 1))
	lands := landingOf(t, s, nil)
	second := applyLater(n, many(0, 2))
	landingOf(t, s, lands)
	gate <- broken
	for _, done := range []chan applied{first, second} {
		if got := <-done; !errors.Is(got.err, broken) || got.outcomes != nil {
			t.Errorf("a batch ends with %v, %v", got.outcomes, got.err)
		}
	}
	for _, writes := range [][]dbadapter.Write{many(0, 3), write("0", 3)} {
		if _, err := n.Apply(t.Context(), writes); !errors.Is(err, broken) {
			t.Errorf("%d writes after that end with %v", len(writes), err)
		}
	}
	checkLog(t, n, 0)
}

// TestNothingBeforeLanding: a batch that writes nothing, since what lands holds all of it,
// ends only when that has landed, and fails with it.
func TestNothingBeforeLanding(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, fails := range []error{nil, broken} {
		s, n, gate := behindGate(t)
		first := applyLater(n, many(0, 1))
		landingOf(t, s, nil)
		second := applyLater(n, many(0, 1))
		select {
		case got := <-second:
			t.Errorf("a batch ends with %v, %v before what it is found equal to is on the disk", got.outcomes[0], got.err)
			second <- got
		case <-time.After(100 * time.Millisecond):
		}
		gate <- fails
		for _, done := range []chan applied{first, second} {
			if got := <-done; !errors.Is(got.err, fails) || (got.outcomes == nil) != (fails != nil) {
				t.Errorf("a batch ends with %v, want %v", got.err, fails)
			}
		}
	}
}

// checkLog compares the change log from its beginning on with what the namespace holds.
func checkLog(t *testing.T, n *namespace, atLeast int) {
	t.Helper()
	opened, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var sum, held dbadapter.Digest
	changes, records := 0, 0
	for c, err := range n.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		changes++
		sum, records = sum.Add(c.Delta), records+c.Records
	}
	for r, err := range opened.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		held, records = held.Add(r.Digest), records-1
	}
	if sum != held || records != 0 || changes < atLeast {
		t.Errorf("%d changes, want %d at least; they add up to %v, and the records to %v; %d records are not there", changes, atLeast, sum, held, records)
	}
}

// TestManyBeside: of large and small batches that callers apply at once, each key holds
// the newest, and the log says how it came about. Callers use their memory again.
func TestManyBeside(t *testing.T) {
	const callers, batches, keys = 4, 12, 3 * queue.Large
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	last := uint64(0)
	_, n := openTest(t, t.TempDir(), Options{LogLimit: 1 << 20}, func(changes []dbadapter.Change) {
		for _, c := range changes {
			if last++; c.Seq != last {
				t.Errorf("an observer is told of change %d after %d", c.Seq, last-1)
			}
		}
	})
	var mu sync.Mutex
	newest := map[string]int{}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(caller)))
			for range batches {
				size := 1 + rng.IntN(2*queue.Large)
				var writes []dbadapter.Write
				mu.Lock()
				for range size {
					key, second := fmt.Sprint(rng.IntN(keys)), rng.IntN(1000)
					writes = append(writes, write(key, second)...)
					newest[key] = max(newest[key], second+1)
				}
				mu.Unlock()
				for i := range writes {
					w := &writes[i].Record
					w.Signature = make([]byte, dbadapter.SignatureSize)
				}
				if _, err := n.Apply(context.Background(), writes); err != nil {
					t.Error(err)
				}
				for i := range writes {
					clear(writes[i].Record.Key)
					clear(writes[i].Record.Value)
					for at := range writes[i].Record.Signature {
						writes[i].Record.Signature[at] = 1
					}
				}
			}
		})
	}
	all.Wait()
	opened, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for key, second := range newest {
		r, err := opened.Get([]byte(key))
		if want := write(key, second-1)[0].Record.Version; err != nil || r.Version != want || r.Signature[0] != 0 {
			t.Fatalf("%q holds %v, %x, %v, want %v", key, r.Version, r.Signature, err, want)
		}
	}
	checkLog(t, n, len(newest))
}
