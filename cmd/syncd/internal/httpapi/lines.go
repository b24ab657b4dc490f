package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

type importInput struct {
	api.ImportParams
	RawRequest
}

type exportInput struct {
	api.ExportParams
	RawRequest
}

func (s *server) registerLines() {
	op := operation(api.Import)
	op.RequestBody = &huma.RequestBody{Required: true, Content: lines(&huma.Schema{Type: "string"})}
	serve(s, op, ofNamespace(s, s.importLines))
	op = operation(api.Export)
	op.Responses = map[string]*huma.Response{"200": {Description: "The records", Content: lines(&huma.Schema{Type: "string"})}}
	serve(s, op, ofNamespace(s, s.exportLines))
}

// maxDrain bounds what is read of a body after the import has stopped, so
// that a client which writes all before it reads sees the answer.
const maxDrain = 64 << 20

func (s *server) importLines(ctx context.Context, ns *peer.Namespace, in *importInput) (*output[api.ImportResult], error) {
	var ack *peer.Level
	if in.Ack != "" {
		ack = new(peer.Level)
		if err := ack.UnmarshalText([]byte(in.Ack)); err != nil {
			return nil, err
		}
	}
	r := jsonlines.NewReader(in.body, in.Line)
	at := &lineOf{first: in.Line}
	var rejects []api.Reject
	o := peer.ImportOptions{Ack: ack, AsNew: in.AsNew, Continue: in.Earliest, OnRefused: func(i int64, item peer.Item) {
		if len(rejects) < in.Rejects {
			rejects = append(rejects, api.Reject{Line: int(i), Key: api.KeyOf(bytes.Clone(item.Key)), Time: item.Time})
		}
	}}
	done, err := ns.ImportWith(ctx, items(r, at), o)
	result := api.ImportResultOf(done, r.Line()-in.Line+1)
	for i := range rejects {
		rejects[i].Line = at.of(int64(rejects[i].Line)) // by now no item is read beside
	}
	if result.Rejects = rejects; err == nil {
		return &output[api.ImportResult]{result}, nil
	}
	_, _ = io.CopyN(io.Discard, in.body, maxDrain) // a courtesy; the answer stands
	line, detail := at.of(done.Items), err
	var bad *jsonlines.LineError
	switch {
	case errors.As(err, &bad) && errors.Is(bad, peer.ErrLimit):
		line, detail = bad.Line, bad
	case errors.As(err, &bad):
		line, detail = bad.Line, problem.Malformed(bad)
	case errors.Is(err, peer.ErrFutureVersion), errors.Is(err, peer.ErrLimit):
		detail = fmt.Errorf("line %d: %w", line, err)
	}
	p := problem.From(fail(detail))
	p.Line, p.Kept = line, done.Items-done.Refused
	if done.Refused > 0 {
		p.Import = &result
	}
	return nil, p
}

// items reads what is to be imported, and notes on which lines.
func items(r *jsonlines.Reader, at *lineOf) iter.Seq2[peer.Item, error] {
	return func(yield func(peer.Item, error) bool) {
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(peer.Item{}, err)
				return
			}
			at.note(r.Line())
			rec := dbadapter.Record{Key: e.Key, Value: e.Value}
			if err := rec.Validate(); err != nil {
				yield(peer.Item{}, &jsonlines.LineError{Line: r.Line(), Err: err})
				return
			}
			if !yield(peer.Item{Key: e.Key, Value: e.Value, Time: e.Time, Expires: e.Expires}, nil) {
				return
			}
		}
	}
}

// lineOf knows on which line each record stood: the first line, and where
// empty lines came between.
type lineOf struct {
	first int
	count int64
	gaps  []gap
}

// gap says that from this record on, line − record is offset.
type gap struct {
	record int64
	offset int
}

func (l *lineOf) note(line int) {
	offset := line - int(l.count)
	if n := len(l.gaps); (n == 0 && offset != l.first) || (n > 0 && offset != l.gaps[n-1].offset) {
		l.gaps = append(l.gaps, gap{l.count, offset})
	}
	l.count++
}

// of is the line of a record, counted from 0.
func (l *lineOf) of(record int64) int {
	offset := l.first
	for _, g := range l.gaps {
		if g.record <= record {
			offset = g.offset
		}
	}
	return offset + int(record)
}

func (s *server) exportLines(ctx context.Context, ns *peer.Namespace, in *exportInput) (*huma.StreamResponse, error) {
	options := []peer.ScanOption{peer.After([]byte(in.After))}
	if in.Versions {
		options = append(options, peer.WithTombstones())
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", linesType)
		begun, err := writeLines(h.BodyWriter(), ns.Scan(ctx, []byte(in.Prefix), options...), in.Versions)
		if err != nil && !begun {
			writeProblem(in.write, problem.From(fail(err)))
		} else if err != nil {
			s.Logger.Warn("export broke off", slog.String("namespace", in.NS), slog.Any("error", err))
			// The status has gone out: a cut connection tells each client.
			sayLast(in.write, problem.From(fail(err)))
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// sayLast writes a problem as the last line of an export.
func sayLast(w http.ResponseWriter, p *problem.Problem) {
	b, err := json.Marshal(p)
	if err != nil {
		return
	}
	if _, err := fmt.Fprintf(w, "%s%s}\n", api.ExportProblem, b); err != nil {
		return // the client is gone
	}
	_ = http.NewResponseController(w).Flush() // as above
}

// writeLines writes records in whole lines. An error before the first of them has gone out
// can be answered; one that comes later finds all records before it written.
func writeLines(w io.Writer, records iter.Seq2[dbadapter.Record, error], versions bool) (begun bool, err error) {
	const chunk = 64 << 10
	var buf []byte
	for rec, err := range records {
		if err != nil && begun {
			_, _ = w.Write(buf) // the error stands
		}
		if err != nil {
			return begun, err
		}
		e := entryOf(&rec, versions)
		if buf = jsonlines.Append(buf, &e); len(buf) < chunk {
			continue
		}
		begun = true
		if _, err := w.Write(buf); err != nil {
			return begun, err
		}
		buf = buf[:0]
	}
	_, err = w.Write(buf)
	return true, err
}

// entryOf is the line of a record. A record that came with its time, from a
// dated import, goes out with it, so that an import of the export makes the
// same record; a version of a node's own cannot be made elsewhere.
func entryOf(rec *dbadapter.Record, versions bool) jsonlines.Entry {
	e := jsonlines.Entry{Key: rec.Key, Value: rec.Value, Deleted: rec.Deleted, Expires: api.ExpiryOf(rec)}
	if rec.Version.Writer == 0 && rec.Version.Incarnation == 0 {
		e.Time = rec.Version.Clock.Time()
	}
	if versions {
		e.Version = rec.Version.String()
	}
	return e
}
