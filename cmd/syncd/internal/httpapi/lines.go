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
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

type importInput struct {
	NS       string    `path:"ns" doc:"the namespace's local name"`
	Line     int       `query:"line" default:"1" minimum:"1" doc:"the number of the first line, for messages"`
	Ack      string    `query:"ack" doc:"of a namespace that is cut into shards: how many hosts of a key's shard must have each record durably before it counts: one, quorum, all or a number; without it, quorum"`
	AsNew    bool      `query:"as_new" doc:"write a record whose date is not taken as of now, unless its key holds something that is later than the date"`
	Rejects  int       `query:"rejects" default:"100" minimum:"0" maximum:"10000" doc:"how many of the records that are refused the answer lists"`
	Earliest time.Time `query:"earliest" doc:"of an import of several requests: what the last one has answered as earliest"`
	RawRequest
}

type importOutput struct{ Body api.ImportResult }

type exportInput struct {
	NS       string `path:"ns" doc:"the namespace's local name"`
	Prefix   string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	After    string `query:"after" doc:"only keys behind this one, percent-encoded; it need not exist"`
	Versions bool   `query:"versions" doc:"with versions, and with deleted and expired records"`
	RawRequest
}

func (s *server) registerLines() {
	huma.Register(s.api, huma.Operation{
		OperationID: "import", Method: http.MethodPost, Path: "/v1/ns/{ns}/import", Summary: "Import records, a JSON object a line",
		Description: `{"key":"a","value":"one","time":"2024-03-01T12:00:00Z"}; key64 and value64 are base64, time and expires are optional. ` +
			"What has expired is left out and counted. " +
			"A record whose date is not taken is refused and listed, and the others are imported: up to that date members may have collected deleted records; from says from which date on records are taken. " +
			"A line that is no record ends the import: the problem says which one, and how many records before it were kept. " +
			"In a namespace that is cut into shards the records go to the hosts of their shards; where too few of them take a record in time (502, 504) the problem says so, too. " +
			"Records behind that one may be kept as well: sent again, they are unchanged.",
		RequestBody: &huma.RequestBody{Required: true, Content: lines(&huma.Schema{Type: "string"})},
	}, s.importLines)
	huma.Register(s.api, huma.Operation{
		OperationID: "export", Method: http.MethodGet, Path: "/v1/ns/{ns}/export", Summary: "Export records, a JSON object a line",
		Description: "Sorted by the bytes of the keys, in canonical form. An error on the way cuts the connection, behind a last line " + api.ExportProblem + "…}, which holds the problem: an export after the last key goes on.",
		Responses:   map[string]*huma.Response{"200": {Description: "The records", Content: lines(&huma.Schema{Type: "string"})}},
	}, s.exportLines)
}

// maxDrain bounds what is read of a body after the import has stopped, so
// that a client which writes all before it reads sees the answer.
const maxDrain = 64 << 20

func (s *server) importLines(ctx context.Context, in *importInput) (*importOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	var ack *peer.Level
	if in.Ack != "" {
		ack = new(peer.Level)
		if err := ack.UnmarshalText([]byte(in.Ack)); err != nil {
			return nil, fail(err)
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
		return &importOutput{result}, nil
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
	p := problem.From(detail)
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

func (s *server) exportLines(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
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
