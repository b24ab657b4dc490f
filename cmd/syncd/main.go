// Command syncd keeps sets of records equal on many machines, for a cost that
// follows the difference between them, not their size. "syncd demo" shows the
// main job end to end; "syncd --help" lists the commands.
package main

import (
	"os"
	"runtime/debug"

	"github.com/syncd-io/syncd/cmd/syncd/internal/cli"
)

func main() {
	// A crash ends by SIGABRT: Go would give it exit code 2, which stands for wrong usage.
	debug.SetTraceback("crash")
	os.Exit(cli.Process())
}
