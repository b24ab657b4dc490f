package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// simulator is the program behind testnet.
const simulator = "syncd-testnet"

type testnetCmd struct {
	Args []string `arg:"" optional:"" empty:"" help:"Its arguments; --help lists them."`
}

// Run starts the simulator, and ends as it does. It stops it when it is interrupted;
// a time-out the simulator knows itself.
func (c testnetCmd) Run(ctx context.Context, a *app) error {
	path, err := findSimulator()
	if err != nil {
		return fmt.Errorf("testnet: the program %s is neither beside this one nor in PATH; "+
			"install it: go install github.com/syncd-io/syncd/cmd/syncd/%[1]s@latest", simulator)
	}
	args := []string{"--output=" + a.Output, "--timeout=" + a.Timeout.String()}
	if a.Quiet {
		args = append(args, "--quiet")
	}
	run := exec.CommandContext(ctx, path, append(args, c.Args...)...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	run.Cancel = func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil
		}
		return run.Process.Signal(syscall.SIGTERM)
	}
	err = run.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return &saidError{ended.ExitCode()}
	}
	return attempt(err, "testnet")
}

// findSimulator looks beside this program first, where the simulator of the same
// version is.
func findSimulator() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), simulator)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(simulator)
}
