package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
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
