package jsonlines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/syncd-io/syncd/dbadapter"
)

// LineError says which line an import stopped at.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ErrLong: a line is longer than MaxLine, and so its value too long.
var ErrLong = fmt.Errorf("%w: the line is longer than %d bytes; a value has at most %d bytes", dbadapter.ErrLimit, MaxLine, dbadapter.MaxValue)

// Lines reads lines of bounded length and counts them.
type Lines struct {
	r    *bufio.Reader
	line int
	long []byte
}

// NewLines reads from r; first is the number of the first line.
func NewLines(r io.Reader, first int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 1<<16), line: first - 1}
}

// Line is the number of the line that Next returned last.
func (l *Lines) Line() int { return l.line }

// Next returns the next line with its line feed (a last line may lack it),
// or io.EOF. The slice is valid until the next call. A line that is too long
// is a *LineError.
func (l *Lines) Next() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if len(part) == 0 && err != nil {
		return nil, err
	}
	l.line++
	if err == nil || errors.Is(err, io.EOF) {
		return part, nil
	}
	l.long = l.long[:0]
	for {
		l.long = append(l.long, part...)
		switch {
		case len(l.long) > MaxLine:
			return nil, &LineError{l.line, ErrLong}
		case err == nil || (errors.Is(err, io.EOF) && len(l.long) > 0):
			return l.long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		part, err = l.r.ReadSlice('\n')
	}
}

// Reader reads entries.
type Reader struct {
	lines  *Lines
	parser parser
}

// NewReader reads from r; first is the number of the first line.
func NewReader(r io.Reader, first int) *Reader { return &Reader{lines: NewLines(r, first)} }

// Line is the number of the line last read.
func (r *Reader) Line() int { return r.lines.Line() }

// Next returns the next entry, or io.EOF, or a *LineError for a line that is
// not a record.
func (r *Reader) Next() (Entry, error) {
	for {
		line, err := r.lines.Next()
		if err != nil {
			return Entry{}, err
		}
		if len(bytes.TrimLeft(line, " \t\r\n")) == 0 {
			continue
		}
		e, err := r.parser.parse(line)
		if err != nil {
			return Entry{}, &LineError{r.lines.Line(), err}
		}
		return e, nil
	}
}
