package cli

import (
	"context"
	"io"
)

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
