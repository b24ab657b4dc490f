// Command syncd keeps sets of records equal on many machines, for a cost that
// follows the difference between them, not their size. "syncd demo" shows the
// main job end to end; "syncd --help" lists the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/syncd-io/syncd/cmd/syncd/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	// A reader that has seen enough (syncd export | head) ends the command by
	// an error like any other, so that it cleans up.
	signal.Ignore(syscall.SIGPIPE)
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
