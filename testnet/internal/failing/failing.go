// Package failing runs the body of a test that may fail, without failing the
// test around it, and keeps its messages:
//
//	f := &failing.Test{TB: t}
//	f.Run(func() { body(f) })
//	if f.Failed() { … f.Errors() … }
package failing

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Test stands for TB in the body. Cleanups and folders are those of TB.
type Test struct {
	testing.TB
	mu     sync.Mutex // guards what follows
	errors []string
	said   []string // errors, and what was logged
}

// Run ends where Fatal ends it, as the body of a test does.
func (t *Test) Run(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body()
	}()
	<-done
}

// Failed reports whether the body has failed.
func (t *Test) Failed() bool { return len(t.Errors()) > 0 }

// Errors are the messages of its failures.
func (t *Test) Errors() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errors
}

// Said is all that it said, a line each.
func (t *Test) Said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.said, "\n")
}

// Helper is of no use here: the lines that fail are not printed.
func (t *Test) Helper() {}

// Log notes what is said.
func (t *Test) Log(args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, fmt.Sprint(args...))
}

// Error notes a failure.
func (t *Test) Error(args ...any) {
	t.Log(args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, fmt.Sprint(args...))
}

// Fatal notes a failure and ends the goroutine that calls it.
func (t *Test) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

// Errorf is Error of a formatted message.
func (t *Test) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }

// Fatalf is Fatal of a formatted message.
func (t *Test) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }
