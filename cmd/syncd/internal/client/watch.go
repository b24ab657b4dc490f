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
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// maxEvent bounds the line of an event: the largest value in base64, its key and its cursor.
const maxEvent = 4<<20 + api.MaxWatchBody

// Watch calls told with each event behind a cursor. It ends with an error: that of told,
// one of the daemon's, or ErrNoDaemon where the connection broke.
func (c *Client) Watch(ctx context.Context, ns, since string, prefix []byte, told func(*api.Event) error) error {
	q := url.Values{}
	if len(prefix) > 0 {
		q.Set("prefix", string(prefix))
	}
	body, err := json.Marshal(api.WatchRequest{Since: since}) // a cursor may be longer than an address
	if err != nil {
		return err
	}
	resp, err := c.do(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/watch", query: q,
		body: bytes.NewReader(body), kind: "application/json",
	})
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
