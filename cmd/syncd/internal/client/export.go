package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// maxExported bounds a line of an export: a record with its version.
const maxExported = jsonlines.MaxLine + 1<<10

// ExportOptions narrow or widen an export.
type ExportOptions struct {
	Prefix []byte
	// After, if not empty, is a key behind which the export begins.
	After    []byte
	Versions bool
}

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
func (c *Client) Export(ctx context.Context, ns string, o ExportOptions, w io.Writer) error {
	q := url.Values{}
	if len(o.Prefix) > 0 {
		q.Set("prefix", string(o.Prefix))
	}
	if len(o.After) > 0 {
		q.Set("after", string(o.After))
	}
	if o.Versions {
		q.Set("versions", "true")
	}
	resp, err := c.do(ctx, request{method: http.MethodGet, path: api.NamespacePath(ns) + "/export", query: q})
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
