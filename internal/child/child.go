// Package child runs a test of the running binary once more, in a process of its own.
// It is for tests of locks, kills and power cuts:
//
//	if what := os.Getenv("PKG_CHILD"); what != "" {
//		// … be the child: do it, print "done" …
//		child.Hold()
//	}
//	c := child.Start(t, "TestLock", "PKG_CHILD=hold the log")
//	c.Expect("done")
//	c.Kill()
package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Process is a child that runs until it is killed, at the latest when the test
// ends.
type Process struct {
	t       testing.TB
	command *exec.Cmd
	In      io.Writer      // its standard input
	Lines   *bufio.Scanner // of its standard output; they stay when it is killed
}

// Start runs the named test in another process, with these settings of the form
// NAME=VALUE in its environment.
func Start(t testing.TB, test string, environment ...string) *Process {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	command.Env = append(os.Environ(), environment...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe() // Hold waits for its end
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe() // unlike StdoutPipe, it is still there when the child is gone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	command.Stdout = in
	err = command.Start()
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, command: command, In: stdin, Lines: bufio.NewScanner(out)}
	t.Cleanup(p.Kill)
	return p
}

// Expect reads a line of what the child prints, and fails the test if it is
// another.
func (p *Process) Expect(line string) {
	p.t.Helper()
	if !p.Lines.Scan() || p.Lines.Text() != line {
		p.t.Fatalf("the child said %q (%v), want %q", p.Lines.Text(), p.Lines.Err(), line)
	}
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Kill ends the child by a signal that it cannot handle, and waits until it is
// gone. A second call does nothing.
func (p *Process) Kill() {
	if p.command.ProcessState != nil {
		return
	}
	if err := p.command.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_ = p.command.Wait() // it was killed, and says so
}

// Hold keeps the calling child where it is until its parent is gone.
func Hold() { _, _ = os.Stdin.Read(make([]byte, 1)) }
