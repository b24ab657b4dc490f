package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// DiffKeys calls told with each key that differs from a peer, and returns the last line,
// which is meaningful beside an error.
func (c *Client) DiffKeys(ctx context.Context, ns, peerText string, prefix []byte, limit int, told func(*api.KeyDifference) error) (last api.KeyDifference, err error) {
	q := url.Values{"peer": {peerText}}
	if len(prefix) > 0 {
		q.Set("prefix", string(prefix))
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	resp, err := c.do(ctx, request{method: http.MethodGet, path: api.NamespacePath(ns) + "/diff/keys", query: q})
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
