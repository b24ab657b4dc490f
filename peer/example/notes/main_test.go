package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

// TestPage: docs/GO.md shows this program as it is.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/GO.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, append([]byte("```go\n"), program...)) {
		t.Error("docs/GO.md does not show main.go as it is")
	}
}

// node is a run of the program, whose lines the test reads.
type node struct {
	t     *testing.T
	lines *bufio.Reader
	stop  func()
}

func start(t *testing.T, dir, ticket string, notes ...string) *node {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := run(ctx, dir, 0, ticket, notes, w)
		if ctx.Err() == nil {
			t.Errorf("the program has ended: %v", err)
		}
		_ = w.Close()
	}()
	n := &node{t, bufio.NewReader(r), func() { cancel(); _ = r.Close(); <-ended }}
	t.Cleanup(n.stop)
	return n
}

// word reads on to a line that has the word, and returns what follows it.
func (n *node) word(word string) string {
	n.t.Helper()
	for {
		line, err := n.lines.ReadString('\n')
		if err != nil {
			n.t.Fatalf("no line has %q: %v", word, err)
		}
		if _, rest, ok := strings.Cut(line, word); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// TestNotes: each node prints the notes of the other one, and has them after its second start.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	a := start(t, t.TempDir(), "", "milk")
	ticket := a.word("ticket ")
	b := start(t, dir, ticket, "bread")
	b.word("milk, since ")
	a.word("bread, since ")
	b.stop()
	start(t, dir, "").word("milk, since ")
}
