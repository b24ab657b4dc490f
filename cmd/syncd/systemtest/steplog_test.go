//go:build linux

package systemtest

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

// steps of a sync, in their order. The daemon logs each as it begins, with the
// field "step", when it is started with -v.
var steps = []string{"sketch", "subtract", "peel", "fetch", "apply", "verify"}

// stepLog follows a daemon's log.
type stepLog struct {
	done chan struct{} // closed at the end of the log

	mu      sync.Mutex // guards what follows
	last    string     // the step logged last
	lines   []string   // the last lines
	waiting map[string]chan struct{}
	syncs   chan struct{} // gets a value, if there is room, at each step; nil: not wanted
}

// kept is how many lines of the log a failure shows.
const kept = 20

func readSteps(r io.Reader) *stepLog {
	l := &stepLog{done: make(chan struct{}), waiting: map[string]chan struct{}{}}
	go func() {
		defer close(l.done)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			l.add(lines.Text())
		}
		_, _ = io.Copy(io.Discard, r) // past a line too long to scan
	}()
	return l
}

func (l *stepLog) add(line string) {
	var entry struct{ Step string }
	_ = json.Unmarshal([]byte(line), &entry) // not every line is JSON: a panic is not
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines[max(0, len(l.lines)-kept):], line)
	if entry.Step == "" {
		return
	}
	l.last = entry.Step
	select {
	case l.syncs <- struct{}{}:
	default:
	}
	if c := l.waiting[entry.Step]; c != nil {
		delete(l.waiting, entry.Step)
		close(c)
	}
}

// reach is closed when the step is logged the next time.
func (l *stepLog) reach(step string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.waiting[step] = c
	return c
}

// follow has steps give a value to syncs, if there is room.
func (l *stepLog) follow(syncs chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncs = syncs
}

// step is the one logged last.
func (l *stepLog) step() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *stepLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
