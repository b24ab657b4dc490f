package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions, also beside an error where too few hosts have confirmed them. The list goes out as it is: bytes that are not UTF-8 are refused, and not
// replaced. The timeout, if not empty, is for how long the daemon waits for hosts.
func (c *Client) Batch(ctx context.Context, ns string, list []byte, timeout string) ([]string, error) {
	var out api.Versions
	r := request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/batch", body: bytes.NewReader(list), kind: "application/json", query: url.Values{},
	}
	AckOptions{Timeout: timeout}.set(r.query)
	err := c.change(ctx, r, into(&out))
	if p, ok := errors.AsType[*problem.Problem](err); ok && errors.Is(p, peer.ErrUnconfirmed) {
		return p.Versions, err
	}
	return out.Versions, err
}
