package testnettest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/syncd-io/syncd/peer"
)

// keptLines is how many lines of a node's log are kept for a test that fails:
// enough for its last few syncs.
const keptLines = 30

// logs keeps the last lines of each node.
type logs struct {
	mu    sync.Mutex // guards lines
	lines [][]string
}

func newLogs(n int) *logs { return &logs{lines: make([][]string, max(n, 0))} }

// of is the logger of a node.
func (l *logs) of(i int) *zap.Logger {
	style := zap.NewDevelopmentEncoderConfig()
	style.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(style), &lineWriter{l, i}, zap.InfoLevel))
}

// show prints what was kept, with the nodes' numbers for their ids.
func (l *logs) show(t testing.TB, ids []peer.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for i, id := range ids {
		names = append(names, id.String(), fmt.Sprintf("node %d", i))
	}
	var text strings.Builder
	for i, lines := range l.lines {
		fmt.Fprintf(&text, "\nthe last lines of node %d:\n%s", i, strings.Join(lines, ""))
	}
	t.Log(strings.NewReplacer(names...).Replace(text.String()))
}

// lineWriter takes one line with each Write, as zap does.
type lineWriter struct {
	logs *logs
	node int
}

// Write implements zapcore.WriteSyncer.
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

// Sync implements zapcore.WriteSyncer.
func (w *lineWriter) Sync() error { return nil }
