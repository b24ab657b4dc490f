package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Process runs the command line of this process and returns its exit code.
func Process() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	// A reader that has seen enough (syncd export | head) ends the command by
	// an error like any other, so that it cleans up.
	signal.Ignore(syscall.SIGPIPE)
	return Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
