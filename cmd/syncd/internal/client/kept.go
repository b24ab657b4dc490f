package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// The lists of kept records.
const (
	Conflicts = "conflicts"
	Rejected  = "rejected"
)

func keptPath(ns, list string, seq uint64) string {
	return api.NamespacePath(ns) + "/" + list + "/" + strconv.FormatUint(seq, 10)
}

// Kept lists a page of one of the lists: of all keys, or of one. member, if not empty, is that whose
// list it is; else it is the daemon's.
func (c *Client) Kept(ctx context.Context, ns, list, member string, key []byte, cursor uint64, limit int) (api.KeptList, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if member != "" {
		query.Set("member", member)
	}
	if len(key) > 0 {
		query.Set("key", string(key))
	}
	if cursor > 0 {
		query.Set("cursor", strconv.FormatUint(cursor, 10))
	}
	return ask[api.KeptList](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/"+list, query, nil)
}

// KeptValue is one entry with its value.
func (c *Client) KeptValue(ctx context.Context, ns, list string, seq uint64) (api.KeptValue, error) {
	return ask[api.KeptValue](ctx, c, http.MethodGet, keptPath(ns, list, seq), nil, nil)
}

// RestoreKept writes an entry again and forgets it.
func (c *Client) RestoreKept(ctx context.Context, ns, list string, seq uint64) (api.Restored, error) {
	var out api.Restored
	err := c.change(ctx, request{method: http.MethodPost, path: keptPath(ns, list, seq) + "/restore"}, into(&out))
	return out, err
}

// ForgetKept forgets an entry for good.
func (c *Client) ForgetKept(ctx context.Context, ns, list string, seq uint64) error {
	return c.call(ctx, http.MethodDelete, keptPath(ns, list, seq), nil, nil, nil)
}

// ForgetAllKept forgets the entries up to one for good.
func (c *Client) ForgetAllKept(ctx context.Context, ns, list string, through uint64) (api.Forgotten, error) {
	query := url.Values{"through": {strconv.FormatUint(through, 10)}}
	return ask[api.Forgotten](ctx, c, http.MethodDelete, api.NamespacePath(ns)+"/"+list, query, nil)
}
