package model

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// A crash loses no acknowledged write, and may lose others.
func TestCrash(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 1})
	n := cl.Node(0)
	put(t, n, "k", "v")
	told := false
	n.Write([]dbadapter.Record{{Key: []byte("l"), Value: []byte("w")}}, func(int, dbadapter.Version, error) { told = true })
	n.Crash()
	n.world.Run(time.Minute)
	if told || n.Up() {
		t.Fatal("a dead process answers")
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if last := book.started[len(book.started)-1]; len(last) == 0 || string(last[0].Key) != "k" {
		t.Errorf("it holds %v", values(n))
	}
	if v, w := n.Records()[0].Version, put(t, n, "k", "x"); w.Compare(v) <= 0 || w.Incarnation == v.Incarnation {
		t.Errorf("%s after %s", w, v)
	}
}

// A node can die at each step of a sync; the next sync completes the work.
func TestCrashAtEachStep(t *testing.T) {
	died := 0
	for node := range 2 {
		for _, step := range reconcile.Steps() {
			cl, _ := cluster(t, Config{Nodes: 2})
			for i := range 5 {
				put(t, cl.Node(0), fmt.Sprint("a", i), "x")
				put(t, cl.Node(1), fmt.Sprint("b", i), "x")
			}
			n := cl.Node(node)
			n.CrashAt(step)
			err := syncNow(t, cl.Node(0), 1)
			if n.Up() {
				n.Disarm() // the responder alone subtracts
			} else if died++; node == 1 && err == nil {
				t.Errorf("step %s: a sync with a node that died has no error", step)
			}
			_ = n.Start()
			if err := syncNow(t, cl.Node(0), 1); err != nil || len(values(cl.Node(0))) != 10 || len(values(cl.Node(1))) != 10 {
				t.Errorf("step %s of node %d: %v; %d and %d records", step, node, err, len(values(cl.Node(0))), len(values(cl.Node(1))))
			}
		}
	}
	if died < 10 {
		t.Errorf("only %d crashes", died)
	}
}

// A node restored from a copy never uses a version twice.
func TestRestore(t *testing.T) {
	cl, _ := cluster(t, Config{Nodes: 1})
	n := cl.Node(0)
	put(t, n, "k", "old")
	n.Copy()
	v := put(t, n, "k", "new")
	n.Stop()
	if err := n.Restore(false); err != nil {
		t.Fatal(err)
	}
	want(t, n, "[k=old]")
	n.Skew(-n.world.Now()) // the clock says what it said before the copy
	if w := put(t, n, "k", "newer"); w == v || w.Incarnation == v.Incarnation {
		t.Errorf("version %s twice", w)
	}
}

// A node that starts again does not recover, and neither does one whose files were put back
// as they were: it does not know. One that was restored by the program does.
func TestRecovering(t *testing.T) {
	cl, _ := cluster(t, Config{Nodes: 2})
	n := cl.Node(1)
	for range 2 { // until then a newcomer recovers, too
		if err := syncNow(t, n, 0); err != nil {
			t.Fatal(err)
		}
	}
	n.Copy()
	recovers := func(what string, started error, want bool) {
		if started != nil || n.process.vouched.Recovering != want || n.process.ns.OtherStore() != want {
			t.Errorf("%s: %v, recovering %v", what, started, n.process.vouched.Recovering)
		}
		n.Stop()
	}
	n.Stop()
	recovers("a start", n.Start(), false)
	recovers("files of a copy", n.Restore(false), false)
	recovers("a backup", n.Restore(true), true)
	if err := n.Restore(true); err != nil {
		t.Fatal(err)
	}
	n.Copy()
	n.Stop()
	if err := n.Restore(false); err != nil || n.process.ns.OtherStore() {
		t.Errorf("files of a copy of what was restored: %v, and it takes them for those of another store", err)
	}
}

// The next start finds a flipped bit, and a copy repairs the node.
func TestDamage(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 1})
	n := cl.Node(0)
	put(t, n, "k", "v")
	n.Copy()
	n.Flip(100)
	want(t, n, "[k=v]")
	n.Crash()
	if err := n.Start(); !errors.Is(err, dbadapter.ErrCorrupt) || n.Up() || !book.has(dbadapter.ErrCorrupt) {
		t.Fatal(err)
	}
	if err := n.Restore(false); err != nil || n.Damage() != nil {
		t.Fatal(err)
	}
	want(t, n, "[k=v]")
}

func TestFull(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 2})
	a, b := cl.Node(0), cl.Node(1)
	b.Fill(true)
	var refused error
	b.Write([]dbadapter.Record{{Key: []byte("k")}}, func(_ int, _ dbadapter.Version, err error) { refused = err })
	if !errors.Is(refused, sim.ErrFull) {
		t.Error(refused)
	}
	put(t, a, "k", "v")
	if err := syncNow(t, a, 1); err == nil || !book.has(sim.ErrFull) {
		t.Errorf("a sync with a full disk: %v", err)
	}
	b.Fill(false)
	if err := syncNow(t, a, 1); err != nil {
		t.Error(err)
	}
	want(t, b, "[k=v]")
}
