// Notes is a small program on package peer: machines that share a list of notes.
//
//	go run ./peer/example/notes -dir a -port 4111 milk
//	go run ./peer/example/notes -dir b -port 4112 -ticket TICKET bread
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/syncd-io/syncd/peer"
)

func main() {
	dir := flag.String("dir", "notes", "folder of this node")
	port := flag.Int("port", 4111, "port on which others reach it")
	ticket := flag.String("ticket", "", "what the first node has printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *port, *ticket, flag.Args(), os.Stdout); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// run writes notes, and prints all notes as they change, until the context ends.
func run(ctx context.Context, dir string, port int, ticket string, notes []string, out io.Writer) error {
	n, err := peer.Open(ctx, peer.Config{
		Dir:          dir,
		ListenAddrs:  []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)}, // the same after a restart, so that others find it
		SyncInterval: time.Minute,                                          // syncs and pushes by itself
		Logger:       slog.New(slog.NewTextHandler(os.Stderr, nil)),        // says what goes wrong
	})
	if err != nil {
		return err
	}
	defer func() { _ = n.Close(context.WithoutCancel(ctx)) }() // what was acknowledged is on disk already

	ns, err := n.Namespace("notes") // there from the second start on
	if errors.Is(err, peer.ErrNotFound) {
		if ticket != "" {
			ns, err = n.Join(ctx, ticket)
		} else {
			ns, err = n.CreateNamespace(ctx, "notes", peer.Policy{})
		}
	}
	if err != nil {
		return err
	}
	if ticket, err = ns.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite}); err == nil { // admins can
		fmt.Fprintln(out, "ticket", ticket)
	}
	for _, note := range notes {
		if _, err := ns.Put(ctx, []byte(note), []byte(time.Now().Format(time.RFC3339))); err != nil {
			return err
		}
	}
	for event, err := range ns.Watch(ctx, peer.FromStart) { // what there is, then what changes, by any node
		if err != nil {
			return err
		}
		if event.Kind == peer.EventPut {
			fmt.Fprintf(out, "%s, since %s\n", event.Record.Key, event.Record.Value)
		}
	}
	return nil
}
