package cli

import (
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

// output is standard output, likewise.
type output struct{ io.Writer }

func (out *output) Write(p []byte) (int, error) {
	n, err := out.Writer.Write(p)
	return n, streamError("write standard output", err)
}

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
