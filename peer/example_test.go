package peer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// Two nodes in one process, in memory, on loopback. With Dir set they would
// keep their identity, members and records.
func Example() {
	ctx := context.Background()
	alice, err := peer.Open(ctx, peer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close(ctx)
	bob, err := peer.Open(ctx, peer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close(ctx)

	notes, err := alice.CreateNamespace(ctx, "notes", peer.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := notes.Put(ctx, []byte("milk"), []byte("2 l")); err != nil {
		log.Fatal(err)
	}
	ticket, err := notes.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite})
	if err != nil {
		log.Fatal(err)
	}

	bobs, err := bob.Join(ctx, ticket) // and fetch what there is
	if err != nil {
		log.Fatal(err)
	}
	if _, err := bobs.Put(ctx, []byte("bread"), []byte("1")); err != nil {
		log.Fatal(err)
	}
	report, err := bobs.Sync(ctx, alice.ID(), peer.SyncOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("received", report.Applied, "sent", report.Sent, "verified", report.Verified)
	for record, err := range bobs.Scan(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", record.Key, record.Value)
	}
	// Output:
	// received 0 sent 1 verified true
	// bread: 1
	// milk: 2 l
}

// A node in a folder: what was acknowledged is there when the node is opened
// again.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	n, err := peer.Open(ctx, peer.Config{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	notes, err := n.CreateNamespace(ctx, "notes", peer.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	first, err := notes.Put(ctx, []byte("milk"), []byte("2 l"))
	if err != nil {
		log.Fatal(err)
	}
	if err := n.Close(ctx); err != nil {
		log.Fatal(err)
	}

	n, err = peer.Open(ctx, peer.Config{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close(ctx)
	notes, err = n.Namespace("notes")
	if err != nil {
		log.Fatal(err)
	}
	record, err := notes.Get(ctx, []byte("milk"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, as it was written: %t\n", record.Value, record.Version == first)
	_, err = notes.PutIf(ctx, []byte("milk"), []byte("3 l"), dbadapter.Version{})
	fmt.Println("only if the key is free:", errors.Is(err, peer.ErrConflict))
	// Output:
	// 2 l, as it was written: true
	// only if the key is free: true
}
