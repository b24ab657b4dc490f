package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"text/tabwriter"
)

// input is standard input. Its errors say so, and not that a daemon or a file has failed.
type input struct{ io.Reader }

func (in *input) Read(p []byte) (int, error) {
	n, err := in.Reader.Read(p)
	return n, streamError("read standard input", err)
}

// output is standard output, likewise. Nothing is written after an error, which is that of the
// command.
type output struct {
	io.Writer
	err error
}

func (out *output) Write(p []byte) (int, error) {
	if out.err != nil {
		return 0, out.err
	}
	n, err := out.Writer.Write(p)
	out.failed(streamError("write standard output", err))
	return n, out.err
}

// taken is the error, which is not that of the command then.
func (out *output) taken() (err error) {
	err, out.err = out.err, nil
	return err
}

// failed notes an error, if it is the first.
func (out *output) failed(err error) { out.err = cmp.Or(out.err, err) }

// streamError is opaque but for EPIPE: no room at standard output is none of the store.
func streamError(what string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		return err
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok { // it names a file that nobody has given
		err = inner.Err
	}
	return fmt.Errorf("%s: %v", what, err)
}

// interruptible is a reader whose Read ends with the context, though the source
// may block for ever, as a terminal does. The goroutine of such a Read is left
// behind; it ends with its source or the process.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no place for it
	r    io.Reader
	buf  []byte // belongs to the goroutine while a read is on the way
	rest []byte // of what was read
}

type readResult struct {
	n   int
	err error
}

func (r *interruptible) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.buf == nil {
			r.buf = make([]byte, 64<<10)
		}
		done := make(chan readResult, 1)
		go func() {
			n, err := r.r.Read(r.buf)
			done <- readResult{n, err}
		}()
		select {
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case got := <-done:
			if got.n == 0 {
				return 0, got.err
			}
			r.rest = r.buf[:got.n] // an error comes again
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// table lines up columns.
type table struct {
	a     *app
	text  strings.Builder
	lines *tabwriter.Writer
}

// table begins a table; a heading of empty cells is not printed.
func (a *app) table(head ...string) *table {
	t := &table{a: a}
	t.lines = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	if strings.Join(head, "") != "" {
		t.row(head...)
	}
	return t
}

func (t *table) row(cells ...string) {
	_, _ = t.lines.Write([]byte(strings.Join(cells, "\t") + "\n")) // into memory
}

// after is print below an empty line.
func (t *table) after() {
	t.a.printf("\n")
	t.print()
}

// print writes the table, without spaces at the ends of lines.
func (t *table) print() {
	_ = t.lines.Flush() // into memory
	for line := range strings.Lines(t.text.String()) {
		t.a.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}
