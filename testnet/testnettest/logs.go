package testnettest

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// keptLines is how many lines of a node's log a failing test shows: enough for
// its last few syncs.
const keptLines = 30

// logs keeps the last lines of each node.
type logs struct {
	mu    sync.Mutex // guards lines
	lines [][]string
}

func newLogs(n int) *logs { return &logs{lines: make([][]string, n)} }

// of is a node's logger.
func (l *logs) of(i int) *slog.Logger {
	return slog.New(slog.NewTextHandler(&lineWriter{l, i}, nil))
}

// show prints the kept lines, with the nodes' numbers for their ids.
func (l *logs) show(n *Net) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for i, p := range n.places {
		names = append(names, p.id.String(), fmt.Sprintf("node %d", i))
	}
	var text strings.Builder
	for i, lines := range l.lines {
		fmt.Fprintf(&text, "\nthe last lines of node %d:\n%s", i, strings.Join(lines, ""))
	}
	n.t.Log(strings.NewReplacer(names...).Replace(text.String()))
}

// lineWriter takes one line with each Write, as slog's handlers write them.
type lineWriter struct {
	logs *logs
	node int
}

// Write implements io.Writer.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	lines := &w.logs.lines[w.node]
	if len(*lines) == keptLines {
		*lines = append((*lines)[:0], (*lines)[1:]...)
	}
	*lines = append(*lines, string(line))
	return len(line), nil
}
