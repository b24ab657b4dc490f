package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// node is a set of records in a store.
type node struct {
	name string
	keys reconcile.Keys
	live *replica.Live
	ns   dbadapter.Namespace
}

func newNode(name string, keys reconcile.Keys) *node {
	n := &node{name: name, keys: keys, live: replica.New(keys)}
	ns, err := memdb.New(memdb.Options{}).Namespace(context.Background(), keys.ID, keys.Hasher, n.live.Observe)
	if err != nil {
		log.Fatal(err)
	}
	n.ns = ns
	return n
}

// admit lets every record in.
func (n *node) admit(records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) {
	return func() ([]reconcile.Verdict, error) { return n.commit(records) }
}

func (n *node) commit(records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	writes := make([]dbadapter.Write, len(records))
	for i := range records {
		writes[i].Record = records[i]
	}
	outcomes, err := n.ns.Apply(context.Background(), writes)
	verdicts := make([]reconcile.Verdict, len(outcomes))
	for i, o := range outcomes {
		verdicts[i].Result = o.Result
	}
	return verdicts, err
}

func (n *node) put(key, value string) {
	version := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}
	r, err := dbadapter.Hash(n.keys.Hasher, dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: version})
	if err == nil {
		_, err = n.commit([]dbadapter.Hashed{r})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open opens a replica of what the node holds now.
func (n *node) open() reconcile.Replica {
	snap, err := n.live.Snapshot(context.Background(), n.ns, nil)
	if err != nil {
		log.Fatal(err)
	}
	return snap
}

func (n *node) options(remote *node) reconcile.Options {
	return reconcile.Options{
		Keys: n.keys, Self: []byte(n.name), Remote: []byte(remote.name), Admit: n.admit,
		Nonce: wire.Nonce{1}, // must be random, and new for each session
	}
}

// Two sides that differ by a record each are made equal. Their sessions say what
// they want; the loop carries it from one to the other.
func Example() {
	keys := reconcile.DeriveKeys(dbadapter.Secret{1, 2, 3}, nil)
	a, b := newNode("a", keys), newNode("b", keys)
	for i := range 1000 {
		a.put(fmt.Sprint("common/", i), "")
		b.put(fmt.Sprint("common/", i), "")
	}
	a.put("of a", "x")
	b.put("of b", "y")

	sessions := [2]*reconcile.Session{
		reconcile.Initiate(a.open(), a.options(b)),
		reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) { return b.open(), nil }, b.options(a)),
	}
	var mail [2][][]byte // to each side
	for running := 2; running > 0; {
		running = 2
		for side, s := range sessions {
			switch e := s.Next(); e.Want {
			case reconcile.WantSend:
				mail[1-side] = append(mail[1-side], bytes.Clone(e.Frame))
			case reconcile.WantReceive:
				for other := sessions[1-side]; len(mail[side]) == 0; {
					e := other.Next() // the only other thing that can go on
					mail[side] = append(mail[side], bytes.Clone(e.Frame))
				}
				m, n, err := wire.Read(bytes.NewReader(mail[side][0]))
				if err != nil {
					log.Fatal(err)
				}
				mail[side] = mail[side][1:]
				s.Deliver(m, n)
			case reconcile.WantNothing:
				running--
			}
		}
	}
	r := sessions[0].Report()
	fmt.Println(r.Differences(), "differences by", r.Method, "of", r.Cells, "cells in", r.Rounds, "round trip")
	fmt.Println("verified:", r.Verified, sessions[0].Err(), sessions[1].Err())
	digest, records, _ := a.live.State()
	other, _, _ := b.live.State()
	fmt.Println(records, "records, equal:", digest == other)
	// Output:
	// 2 differences by sketch of 128 cells in 1 round trip
	// verified: true <nil> <nil>
	// 1002 records, equal: true
}
