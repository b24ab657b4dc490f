package node

import (
	"fmt"
	"strings"

	"github.com/syncd-io/syncd/internal/syncing"
)

// The way of one record, from the node that writes it to the node that reads it.
func Example() {
	alice, bob := newMachine(1), newMachine(2)

	// Alice makes a namespace and invites bob, who redeems the ticket.
	notes := alice.create("notes", Policy{})
	bobs := must(bob.join(alice, invite(notes, RoleRead)))

	// Alice writes: the attempt makes a version and a signature, the store
	// commits, and the attempt judges what came of it.
	written := must(put(notes, "greeting", "hello"))

	// Bob calls alice. The two sessions find the difference, and bob's admission
	// lets the record in.
	bob.verified = 0 // but for the list of members
	report, _, err := bob.sync(bobs, alice, syncing.Ask{})
	fmt.Println("applied", report.Applied, "verified", report.Verified, "error", err)

	record := must(get(bobs, "greeting"))
	fmt.Printf("%s, of the same version: %t, by alice: %t\n", record.Value,
		record.Version == written, record.Version.Writer == must(alice.ID.Writer()))
	fmt.Println("signatures that bob checked:", bob.verified)

	// Bob may only read.
	_, err = put(bobs, "greeting", "good evening")
	fmt.Println(strings.ReplaceAll(err.Error(), alice.ID.String(), "alice"))
	// Output:
	// applied 1 verified true error <nil>
	// hello, of the same version: true, by alice: true
	// signatures that bob checked: 1
	// denied: this node's role here is read, given by alice at 2026-03-01T12:00:00Z; ask an admin for the role write
}
