package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Condition makes a write conditional.
type Condition struct {
	// Version that the record held must have.
	Version *dbadapter.Version
	// Absent demands that there is no record, not even a deleted one.
	Absent bool
}

func (c Condition) header() map[string]string {
	switch {
	case c.Version != nil:
		return map[string]string{"If-Match": `"` + c.Version.String() + `"`}
	case c.Absent:
		return map[string]string{"If-None-Match": "*"}
	}
	return nil
}

// PutOptions say more of a record that is put.
type PutOptions struct {
	// TTL, if not 0, is after what time the record expires.
	TTL time.Duration
	AckOptions
}

// AckOptions say how many are to hold what is written.
type AckOptions struct {
	// Ack, if not empty, is how many hosts of the key's shard are to hold the record: one,
	// quorum, all or a number; without shards, how many members.
	Ack string
	// Timeout, if not empty, is for how long the daemon waits for them.
	Timeout string
}

// Put writes a value and returns its version, also beside an error where it is written.
func (c *Client) Put(ctx context.Context, ns string, key []byte, value io.Reader, o PutOptions, cond Condition) (string, error) {
	return c.write(ctx, request{
		method: http.MethodPut, path: api.KeyPath(ns, key), header: cond.header(), body: value, kind: "application/octet-stream",
		query: params{"ttl": o.TTL, "ack": o.Ack, "timeout": o.Timeout},
	})
}

// Delete makes a record a tombstone and returns its version, also as Put does.
func (c *Client) Delete(ctx context.Context, ns string, key []byte, o AckOptions, cond Condition) (string, error) {
	return c.write(ctx, request{
		method: http.MethodDelete, path: api.KeyPath(ns, key), header: cond.header(), query: params{"ack": o.Ack, "timeout": o.Timeout},
	})
}

// Value is what a key holds.
type Value struct {
	Bytes   []byte
	Version string
	Expires string // RFC 3339; empty for never
	// Answers, where too few hosts have answered, is how many have: "1/3".
	Answers string
}

// GetOptions say how a key is read.
type GetOptions struct {
	Read    string // one, quorum or all; empty: quorum
	AtLeast string // a version, or empty
	Timeout string // a duration, or empty
}

func (o GetOptions) query() params {
	return params{"read": o.Read, "at_least": o.AtLeast, "timeout": o.Timeout}
}

// Get reads a value. Where too few hosts have answered, the value beside the error is what was
// found, if its version is not empty.
func (c *Client) Get(ctx context.Context, ns string, key []byte, o GetOptions) (Value, error) {
	resp, few, err := c.send(ctx, request{method: http.MethodGet, path: api.KeyPath(ns, key), query: o.query()})
	if err != nil {
		return Value{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	v := Value{Version: strings.Trim(resp.Header.Get("ETag"), `"`), Expires: resp.Header.Get("Syncd-Expires"), Answers: resp.Header.Get(api.AnswersHeader)}
	if v.Bytes, err = io.ReadAll(resp.Body); err != nil {
		return Value{}, fmt.Errorf("reading the value: %w", err)
	}
	return v, few
}

// List reads one page of keys.
func (c *Client) List(ctx context.Context, ns string, prefix []byte, cursor string, limit int) (api.KeyList, error) {
	return ask[api.KeyList](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/keys",
		params{"limit": limit, "prefix": string(prefix), "cursor": cursor}, nil)
}

// ImportOptions say more of an import.
type ImportOptions struct {
	// Line is the number of the first line.
	Line int
	// Ack is as in PutOptions.
	Ack string
	// AsNew has what is dated too early written as of now.
	AsNew bool
	// Rejects is how many records that are refused are listed; 0: 100.
	Rejects int
	// Earliest is what the request before of the same import has answered; nil: there was none.
	Earliest *time.Time
}

// Import sends lines.
func (c *Client) Import(ctx context.Context, ns string, lines []byte, o ImportOptions) (api.ImportResult, error) {
	var out api.ImportResult
	query := params{"line": max(o.Line, 1), "ack": o.Ack, "as_new": o.AsNew, "rejects": o.Rejects}
	if o.Earliest != nil {
		query["earliest"] = o.Earliest.UTC().Format(time.RFC3339Nano)
	}
	err := c.change(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/import", query: query,
		body: bytes.NewReader(lines), kind: "application/x-ndjson",
	}, into(&out))
	return out, err
}

// Sync runs a sync. The report is meaningful beside an error.
func (c *Client) Sync(ctx context.Context, in api.SyncRequest) (api.Report, error) {
	out, err := ask[api.Report](ctx, c, http.MethodPost, "/v1/sync", nil, in)
	var p *problem.Problem
	if errors.As(err, &p) && p.Report != nil {
		out = *p.Report
	}
	return out, err
}

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions, also beside an error where too few hosts have confirmed them. The list goes out as it is: bytes that are not UTF-8 are refused, and not
// replaced. The timeout, if not empty, is for how long the daemon waits for hosts.
func (c *Client) Batch(ctx context.Context, ns string, list []byte, timeout string) ([]string, error) {
	var out api.Versions
	err := c.change(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/batch", body: bytes.NewReader(list), kind: "application/json", query: params{"timeout": timeout},
	}, into(&out))
	if p, ok := errors.AsType[*problem.Problem](err); ok && errors.Is(p, peer.ErrUnconfirmed) {
		return p.Versions, err
	}
	return out.Versions, err
}

// Why asks the peers, or one of them, what they hold under a key.
func (c *Client) Why(ctx context.Context, ns string, key []byte, peer string) (api.Whys, error) {
	return ask[api.Whys](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/why64/"+base64.RawURLEncoding.EncodeToString(key), params{"peer": peer}, nil)
}

// Wait waits until members hold what the daemon's node holds. What was found is
// meaningful beside an error.
func (c *Client) Wait(ctx context.Context, ns string, in api.WaitRequest) (status.Waited, error) {
	out, err := ask[status.Waited](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/wait", nil, in)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Waited != nil {
		out = *p.Waited
	}
	return out, err
}

// Locate says which members hold a key of a namespace of shards.
func (c *Client) Locate(ctx context.Context, ns string, key []byte, o GetOptions) (api.Located, error) {
	var out api.Located
	resp, few, err := c.send(ctx, request{
		method: http.MethodGet, path: api.NamespacePath(ns) + "/locate64/" + base64.RawURLEncoding.EncodeToString(key), query: o.query(),
	})
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if err := into(&out)(resp.Header, resp.Body); err != nil {
		return out, err
	}
	return out, few
}
