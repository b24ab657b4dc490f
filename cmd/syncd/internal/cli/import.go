package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/peer"
)

type importCmd struct {
	nsArg
	File     string `arg:"" optional:"" default:"-" help:"File of JSON lines; - or nothing reads standard input."`
	FromLine int    `help:"Begin at this line, as the message of an import that stopped says." default:"1" placeholder:"N"`
	Rejects  string `help:"Append the lines that are refused to this file, as import takes them again." placeholder:"FILE"`
	AsNew    bool   `help:"Write a line whose time is not taken as of now, unless its key holds something later than that time."`
	Ack      string `help:"In a namespace of shards: a record counts once so many hosts of its key's shard have it durably: one, quorum, all or a number. Without it, quorum." placeholder:"LEVEL" predictor:"level"`
}

func (importCmd) Help() string {
	return `Each line is one record:

    {"key":"a","value":"one"}
    {"key64":"/w==","value64":"AAE="}
    {"key":"b","value":"two","time":"2024-03-01T12:00:00Z"}
    {"key":"c","value":"three","expires":"2027-03-01T12:00:00Z"}

key64 and value64 are base64, for bytes that are not UTF-8. time (RFC 3339, with capital T and Z, no leap seconds) is the time of the record's version, cut to the millisecond, from 2020 to at most the namespace's skew ahead of this machine's clock: two sites that import the same dated lines hold the same records. expires is the time from which on the record reads as absent, at most 100 years ahead; a line whose time has come is left out and counted. A value that is there already makes no new version.

Once records were deleted, and all members have heard of it, a line whose time is before that is refused, and nothing of it is written: whether its key was deleted since is not known any more. The other lines are written; the first 100 that were refused are listed, with the time from which on lines are taken, and the exit code is 1. --rejects keeps all of them in a file. --as-new writes them as of now, unless their key holds something later: so the archive of a namespace in which much was deleted is imported.

Unknown or doubled fields are errors; lines of white space are skipped, but counted. An import that stops, also by ctrl-C, says how many lines it kept and how to go on.

In a namespace of shards the records go to all hosts of their shards. Where too few of them take a record, the import stops and says at which line (exit code 5, or 8 where some may hold it). Of the lines behind it some may be kept, and are unchanged when they come again. A line is refused for its time if no host takes it; where one does, it is written.

Examples:
    syncd import notes notes.jsonl
    syncd export notes | syncd --data-dir /srv/other import notes
    syncd import notes notes.jsonl --from-line 1235
    syncd import notes archive.jsonl --rejects rejects.jsonl
    syncd import notes rejects.jsonl --as-new`
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
	var input os.FileInfo
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("import into %q: %w", c.NS, err)
		}
		defer func() { _ = f.Close() }() // read only
		in, name = f, c.File
		if info, err := f.Stat(); err == nil {
			size, input = info.Size(), info
		}
	}
	rejects, err := c.openRejects(input)
	if err != nil {
		return fmt.Errorf("import into %q: %w", c.NS, err)
	}
	s := importer{
		next: api.ImportParams{NSParams: api.OfNS(c.NS), Line: c.FromLine, Ack: c.Ack, AsNew: c.AsNew}, daemon: daemon, bar: a.bars().Bytes("import "+name, size),
		chunk: make([]byte, 0, chunkBytes), rejects: rejects,
	}
	if rejects != nil {
		s.next.Rejects = chunkLines
	}
	err = s.send(ctx, jsonlines.NewLines(&interruptible{ctx: ctx, r: in}, 1))
	if rejects != nil {
		err = cmp.Or(err, rejects.Close())
	}
	s.bar.Done()
	if err != nil {
		return c.stopped(name, &s, err)
	}
	a.print(s.kept, func() { a.printImported(&s.kept) })
	return c.refused(name, &s.kept)
}

// printImported says what became of the records.
func (a *app) printImported(kept *api.ImportResult) {
	besides := ""
	if kept.Expired > 0 {
		besides = fmt.Sprintf(", %d left out since they have expired", kept.Expired)
	}
	if kept.Full > 0 {
		besides += fmt.Sprintf(", %d left out since as many other keys share their index as may", kept.Full)
	}
	if kept.AsNew > 0 {
		besides += fmt.Sprintf(", %d written as of now, since their times are not taken", kept.AsNew)
	}
	if kept.Refused > 0 {
		besides += fmt.Sprintf(", %d refused", kept.Refused)
	}
	a.printf("%d records read: %d written, %d unchanged, %d older than what is there%s\n",
		kept.Items, kept.Written, kept.Unchanged, kept.Stale, besides)
	for _, r := range kept.Rejects {
		a.printf("  line %d: %s, of %s\n", r.Line, show(r.Bytes()), r.Time.UTC().Format(time.RFC3339Nano))
	}
	if more := kept.Refused - int64(len(kept.Rejects)); more > 0 {
		a.printf("  and %d more\n", more)
	}
}

// openRejects opens the file for lines that are refused, if one is named, behind what it has.
func (c importCmd) openRejects(input os.FileInfo) (*os.File, error) {
	if c.Rejects == "" {
		return nil, nil //nolint:nilnil // no file is named
	}
	f, err := os.OpenFile(c.Rejects, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && input != nil && os.SameFile(info, input) {
		_ = f.Close()
		return nil, problem.Usage("--rejects %s is the file that is read; name another one", c.Rejects)
	}
	return f, nil
}

// refused is the error of an import that has refused records; nil: it has refused none.
func (c importCmd) refused(name string, kept *api.ImportResult) error {
	if kept.Refused == 0 || kept.From == nil {
		return nil
	}
	again := fmt.Sprintf("syncd import %s %s --as-new", c.NS, cmp.Or(c.Rejects, c.File))
	return fmt.Errorf("import %s into %q: %w: %d of them, of which nothing is written: their times are before %s, up to when deleted records may have been collected; to write them as of now, over what is not later than their times: %s",
		name, c.NS, problem.ErrRefused, kept.Refused, kept.From.UTC().Format(time.RFC3339Nano), again)
}

// importer passes lines on in chunks.
type importer struct {
	next    api.ImportParams // the next request: the number of the first line in chunk is Line
	daemon  *client.Client
	bar     *progress.Bar
	rejects *os.File // nil: none is named

	chunk   []byte // lines that are not sent yet
	count   int    // how many they are
	sent    bool   // a request was sent
	inDoubt bool   // the answer to the last request did not come
	kept    api.ImportResult
}

// send passes the lines on.
func (s *importer) send(ctx context.Context, lines *jsonlines.Lines) error {
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) && s.next.Line > 1 && lines.Line() < s.next.Line && !s.sent:
			return problem.Usage("--from-line %d: there are %d lines only", s.next.Line, lines.Line())
		case errors.Is(err, io.EOF):
			return s.flush(ctx)
		case ctx.Err() != nil: // what was not sent yet can be read again
			return ctx.Err()
		case err != nil:
			return cmp.Or(s.flush(ctx), err) // lines before it that are not kept come first
		case lines.Line() < s.next.Line:
			s.bar.Add(int64(len(line)))
			continue
		}
		if len(s.chunk) > 0 && (len(s.chunk)+len(line) > chunkBytes || s.count == chunkLines) {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
		s.chunk = append(s.chunk, line...)
		s.count++
	}
}

// flush sends a request; an import without lines sends one, too, so that the
// daemon can refuse the namespace.
func (s *importer) flush(ctx context.Context) error {
	if s.count == 0 && s.sent {
		return ctx.Err()
	}
	s.sent = true
	r, err := s.daemon.Import(ctx, s.next, s.chunk)
	var p *problem.Problem
	var unanswered *client.UnansweredError
	switch {
	case errors.As(err, &p):
		s.kept.Items += p.Kept
		if p.Import == nil {
			return err
		}
		p.Import.Items = p.Import.Refused
		s.kept.Add(*p.Import)
		return cmp.Or(s.reject(p.Import), err)
	case errors.As(err, &unanswered):
		s.inDoubt = true
		return unanswered.Err
	case err != nil:
		return err
	}
	if err := s.reject(&r); err != nil {
		return err
	}
	s.kept.Add(r)
	s.bar.Add(int64(len(s.chunk)))
	if s.kept.Earliest != nil {
		s.next.Earliest = *s.kept.Earliest
	}
	s.next.Line += s.count
	s.chunk, s.count = s.chunk[:0], 0
	return ctx.Err()
}

// reject keeps the lines of the chunk that were refused.
func (s *importer) reject(r *api.ImportResult) error {
	if s.rejects == nil || len(r.Rejects) == 0 {
		return nil
	}
	var lines []byte
	number, left := s.next.Line, r.Rejects
	for line := range bytes.Lines(s.chunk) {
		if len(left) > 0 && left[0].Line == number {
			lines, left = append(lines, line...), left[1:]
			if !bytes.HasSuffix(line, []byte("\n")) {
				lines = append(lines, '\n')
			}
		}
		number++
	}
	if _, err := s.rejects.Write(lines); err != nil {
		return fmt.Errorf("keep the lines that are refused: %w", err)
	}
	return nil
}

// stopped says what an import kept and how to go on.
func (c importCmd) stopped(name string, s *importer, err error) error {
	what := fmt.Sprintf("import %s into %q", name, c.NS)
	line := s.next.Line
	var p *problem.Problem
	var long *jsonlines.LineError
	switch {
	case errors.As(err, &p):
		line = p.Line
	case errors.As(err, &long):
		line, err = long.Line, long
	}
	lines := line - c.FromLine
	again := fmt.Sprintf("go on with: syncd import %s %s --from-line %d", c.NS, c.File, line)
	if c.Ack != "" {
		again += " --ack " + c.Ack
	}
	if c.Rejects != "" {
		again += " --rejects " + c.Rejects
	}
	if c.AsNew {
		again += " --as-new"
	}
	kept := s.kept.Items - s.kept.Refused
	if s.kept.Refused > 0 {
		what += fmt.Sprintf(" (%d records refused for their times)", s.kept.Refused)
	}
	stop := &stoppedImport{line: line, kept: kept}
	switch {
	case errors.Is(err, problem.ErrMalformed), errors.Is(err, peer.ErrLimit), errors.Is(err, peer.ErrFutureVersion):
		stop.error = fmt.Errorf("%s: %w; the %d records before it are kept; correct the line and %s", what, err, kept, again)
	case s.inDoubt:
		stop.error = fmt.Errorf("%s: %w; %d lines (%d records) are kept, and perhaps some that follow; %s", what, err, lines, kept, again)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), kept > 0 && line > 0:
		stop.error = fmt.Errorf("%s: %w; %d lines (%d records) are kept; %s", what, err, lines, kept, again)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return stop
}

// stoppedImport is an error that says where an import stopped.
type stoppedImport struct {
	error
	line int   // at which to go on
	kept int64 // records, before that line
}

func (e *stoppedImport) Unwrap() error { return e.error }
