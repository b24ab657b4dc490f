// Command versions compares the present iblt/rateless with older ones, by turns in one
// process: what an update of a kept sketch, a decode and a build take of the processors.
//
//	go -C bench run ./versions                      beside 72da190, the last with version 2 of the mapping
//	go -C bench run ./versions cfa9e32 72da190      beside others as well
//
// The older versions come out of the repository's history: each is written to a
// module that lives as long as the measurement, under a path of its own, and so is the
// present one, as it stands in the folder. What is measured, subject/, is compiled
// once with each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// second is the last commit whose iblt/rateless has version 2 of the mapping and cells of
// 16 bytes, as they were first released.
const second = "72da190c40ca31c372823badfe8bc82b2e6e1a71"

func main() {
	only := flag.String("only", "", "measure only what matches this regular expression")
	effort := flag.String("effort", "1", "turns, as a multiple of the usual number")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "versions [flags] [commit …]")
		flag.PrintDefaults()
	}
	flag.Parse()
	commits := flag.Args()
	if len(commits) == 0 {
		commits = []string{second}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, commits, "-only", *only, "-effort", *effort); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// run compares with some commits; args are for package turns.
func run(ctx context.Context, commits []string, args ...string) error {
	dir, err := os.MkdirTemp("", "syncd-versions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	m := module{dir: dir, top: strings.TrimSpace(string(top))}
	if err := m.write(ctx, commits); err != nil {
		return err
	}
	program := filepath.Join(dir, "turns.exe")
	if _, err := output(ctx, dir, "go", "build", "-o", program, "."); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// output runs a command in a folder. Its error has what the command said.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return out, nil
}
