package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/peer"
)

type importCmd struct {
	NS       string `arg:"" name:"ns" help:"The namespace's name."`
	File     string `arg:"" optional:"" default:"-" help:"File of JSON lines; - or nothing reads standard input."`
	FromLine int    `help:"Begin at this line, as the message of an import that stopped says." default:"1" placeholder:"N" env:"-"`
}

func (importCmd) Help() string {
	return `Each line is one record:

    {"key":"a","value":"one"}
    {"key64":"/w==","value64":"AAE="}
    {"key":"b","value":"two","time":"2024-03-01T12:00:00Z"}

key64 and value64 are base64, for bytes that are not UTF-8. time (RFC 3339, with capital T and Z, no leap seconds) is the time of the record's version, cut to the millisecond, from 2020 to at most the namespace's skew ahead of this machine's clock: two sites that import the same dated lines hold the same records. A value that is there already makes no new version.

Unknown or doubled fields are errors; lines of white space are skipped, but counted. An import that stops says at which line, how many records it kept, and how to go on.

Examples:
    syncd import notes notes.jsonl
    syncd export notes | syncd --data-dir /srv/other import notes
    syncd import notes notes.jsonl --from-line 1235`
}

// Bounds of one request: a request is answered when all of it is durable, so
// its size decides how finely progress shows and how little a broken
// connection leaves in doubt.
const (
	chunkLines = 8192
	chunkBytes = 4 << 20
)

// Run sends the lines in chunks.
func (c importCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.FromLine < 1 {
		return problem.Usage("--from-line %d: lines are counted from 1", c.FromLine)
	}
	in, size, name := a.stdin, int64(0), "standard input"
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("import into %q: %w", c.NS, err)
		}
		defer func() { _ = f.Close() }() // read only
		in, name = f, c.File
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
	}
	bars := a.bars()
	bar := bars.Bytes("import "+name, size)
	total, err := c.send(ctx, daemon, in, bar)
	bar.Done()
	bars.Close()
	if err != nil {
		return c.stopped(name, total, err)
	}
	if a.json() {
		return a.printJSON(total)
	}
	return a.printf("%d records read: %d written, %d unchanged, %d older than what is there\n",
		total.Records, total.Written, total.Unchanged, total.Stale)
}

// send passes the lines on in chunks. The result counts what was kept, also
// beside an error.
func (c importCmd) send(ctx context.Context, daemon *client.Client, in io.Reader, bar *progress.Bar) (api.ImportResult, error) {
	var total api.ImportResult
	lines := jsonlines.NewLines(in, 1)
	chunk, first, count := make([]byte, 0, chunkBytes), c.FromLine, 0
	flush := func() error {
		if count == 0 {
			return nil
		}
		r, err := daemon.Import(ctx, c.NS, chunk, first)
		if err != nil {
			var p *problem.Problem
			if errors.As(err, &p) {
				total.Records += p.Kept
				return err
			}
			return &inDoubt{first, err}
		}
		total.Add(r)
		bar.Add(int64(len(chunk)))
		chunk, first, count = chunk[:0], first+count, 0
		return nil
	}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			if c.FromLine > 1 && lines.Line() < c.FromLine {
				return total, problem.Usage("--from-line %d: there are %d lines only", c.FromLine, lines.Line())
			}
			return total, flush()
		}
		if err != nil {
			return total, errors.Join(flush(), err)
		}
		if lines.Line() < c.FromLine {
			bar.Add(int64(len(line)))
			continue
		}
		if len(chunk) > 0 && (len(chunk)+len(line) > chunkBytes || count == chunkLines) {
			if err := flush(); err != nil {
				return total, err
			}
		}
		chunk = append(chunk, line...)
		count++
	}
}

// inDoubt is an error after which it is not known how much of a chunk, which
// began at a line, was kept.
type inDoubt struct {
	line int
	error
}

func (d *inDoubt) Unwrap() error { return d.error }

// stopped says where an import stopped and how to go on.
func (c importCmd) stopped(name string, kept api.ImportResult, err error) error {
	line := 0
	var p *problem.Problem
	var doubt *inDoubt
	var long *jsonlines.LineError
	switch {
	case errors.As(err, &p):
		line = p.Line
	case errors.As(err, &long):
		line, err = long.Line, long
	case errors.As(err, &doubt):
		line = doubt.line
	}
	again := fmt.Sprintf("go on with: syncd import %s %s --from-line %d", c.NS, c.File, line)
	switch {
	case line > 0 && (errors.Is(err, problem.ErrMalformed) || errors.Is(err, peer.ErrLimit) || errors.Is(err, peer.ErrFutureVersion)):
		return fmt.Errorf("import %s into %q: %w; the %d records before it are kept; correct the line and %s",
			name, c.NS, err, kept.Records, again)
	case line > 0 && kept.Records > 0:
		return fmt.Errorf("import %s into %q: %w; %d records are kept; %s", name, c.NS, err, kept.Records, again)
	}
	return fmt.Errorf("import %s into %q: %w", name, c.NS, err)
}

type exportCmd struct {
	NS       string `arg:"" name:"ns" help:"The namespace's name."`
	Prefix   string `help:"Only keys that begin with it." placeholder:"P"`
	Versions bool   `help:"With versions, and with deleted records."`
}

func (exportCmd) Help() string {
	return `The lines are sorted by the bytes of the keys and have one canonical form: two nodes that hold the same records print the same bytes. Records from a dated import carry their time.

Examples:
    syncd export notes > notes.jsonl
    syncd export notes --versions | sha256sum`
}

// Run prints the lines.
func (c exportCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	bars := a.bars()
	if progress.IsTerminal(a.stdout) {
		bars = nil // the lines themselves show how far it is
	}
	bar := bars.Bytes("export "+c.NS, 0) // how much will come is not known
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	err := daemon.Export(ctx, c.NS, []byte(c.Prefix), c.Versions, &counted{out, bar})
	bar.Done()
	bars.Close()
	if err := errors.Join(err, out.Flush()); err != nil {
		return attempt(err, "export %q", c.NS)
	}
	return nil
}

// counted moves a bar by what is written.
type counted struct {
	w   io.Writer
	bar *progress.Bar
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bar.Add(int64(n))
	return n, err
}
