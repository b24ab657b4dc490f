package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/offline"
)

// Answers of many lines, which are read as they arrive.

// maxExported bounds a line of an export: a record with its version.
const maxExported = jsonlines.MaxLine + 1<<10

// ExportError ends an export that has given records.
type ExportError struct {
	// Last is the key of the last one: an export after it goes on.
	Last []byte
	Err  error
}

func (e *ExportError) Error() string {
	return fmt.Sprintf("the export ended early, behind the key %.300q: %v", e.Last, e.Err)
}

func (e *ExportError) Unwrap() error { return e.Err }

// Export copies the records' lines to w, each in whole. The error is an ExportError where some were copied.
func (c *Client) Export(ctx context.Context, o api.ExportParams, w io.Writer) error {
	resp, err := c.do(ctx, newRequest(api.Export, o))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	var last []byte
	err = copyLines(w, resp.Body, &last)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	var key api.Key
	if err == nil || last == nil || json.Unmarshal(last, &key) != nil {
		return err
	}
	return &ExportError{key.Bytes(), err}
}

// copyLines copies the lines of an export, and notes the last one.
func copyLines(w io.Writer, r io.Reader, last *[]byte) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxExported)
	lines.Split(wholeLines)
	for lines.Scan() {
		line := lines.Bytes()
		if bytes.HasPrefix(line, []byte(api.ExportProblem)) {
			var p problem.Problem
			if err := json.Unmarshal(line[len(api.ExportProblem):len(line)-len("}\n")], &p); err != nil {
				return fmt.Errorf("reading the daemon's error: %w", err)
			}
			return &p
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		*last = append((*last)[:0], line...)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the export broke off: %w", err)
	}
	return nil
}

// wholeLines is a split function of lines with their line feeds. What an export ends with must be one.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n') + 1; end > 0 {
		return end, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errors.New("within a line")
	}
	return 0, nil, nil
}

// maxEvent bounds the line of an event: the largest value in base64, its key and its cursor.
const maxEvent = 4<<20 + api.MaxWatchBody

// Watch calls told with each event behind a cursor. It ends with an error: that of told,
// one of the daemon's, or ErrNoDaemon where the connection broke.
func (c *Client) Watch(ctx context.Context, ns, since string, prefix []byte, told func(*api.Event) error) error {
	// A cursor may be longer than an address.
	in := api.WatchFromParams{NSParams: api.OfNS(ns), PrefixParams: api.Under(string(prefix)), Body: api.WatchRequest{Since: since}}
	resp, err := c.do(ctx, newRequest(api.WatchFrom, in))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if err := readEvents(resp.Body, told); !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the watch on %s broke off", problem.ErrNoDaemon, c.addr)
}

// readEvents reads the events of a daemon, each of which has its data on one line.
// io.ErrUnexpectedEOF: the stream ended, or broke.
func readEvents(r io.Reader, told func(*api.Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	kind := ""
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			if kind == "error" {
				var p problem.Problem
				if err := json.Unmarshal(value, &p); err != nil {
					return fmt.Errorf("reading the daemon's error: %w", err)
				}
				return &p
			}
			var e api.Event
			if err := json.Unmarshal(value, &e); err != nil {
				return fmt.Errorf("reading the daemon's event: %w", err)
			}
			if err := told(&e); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("reading the daemon's events: %w", err)
	}
	return io.ErrUnexpectedEOF
}

// DiffKeys calls told with each key that differs from a peer, and returns the last line,
// which is meaningful beside an error.
func (c *Client) DiffKeys(ctx context.Context, in api.DiffKeysParams, told func(*api.KeyDifference) error) (last api.KeyDifference, err error) {
	resp, err := c.do(ctx, newRequest(api.DiffKeys, in))
	if err != nil {
		return last, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	for lines := json.NewDecoder(resp.Body); ; {
		var failed problem.Problem
		d := api.KeyDifference{Problem: &failed}
		switch err := lines.Decode(&d); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return last, fmt.Errorf("%w: the list broke off", problem.ErrNoDaemon)
		case err != nil && ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil:
			return last, fmt.Errorf("reading the daemon's list: %w", err)
		}
		switch d.Kind {
		case api.KindEnd:
			d.Problem = nil
			return d, nil
		case api.KindError:
			return d, &failed
		}
		d.Problem = nil
		if err := told(&d); err != nil {
			return last, err
		}
	}
}

// Backup backs the daemon's node up into a folder of its machine. progress is told
// how many bytes have been written.
func (c *Client) Backup(ctx context.Context, in api.NewBackup, progress func(bytes int64)) (offline.Backup, error) {
	var out offline.Backup
	resp, err := c.do(ctx, newRequest(api.MakeBackup, api.WithBody[api.NewBackup]{Body: in}))
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	for lines := json.NewDecoder(resp.Body); ; {
		var line struct {
			Bytes   int64
			Backup  *offline.Backup
			Problem *problem.Problem
		}
		switch err := lines.Decode(&line); {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			return out, fmt.Errorf("the daemon's answer broke off (%w); see its log", err)
		case line.Problem != nil:
			return out, line.Problem
		case line.Backup != nil:
			return *line.Backup, nil
		}
		progress(line.Bytes)
	}
}
