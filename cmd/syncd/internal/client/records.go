package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Put writes a value and returns its version, also beside an error where it is written.
func (c *Client) Put(ctx context.Context, in api.PutParams, value io.Reader) (string, error) {
	return c.write(ctx, newRequest(api.Put, in).with(value, "application/octet-stream"))
}

// Delete makes a record a tombstone and returns its version, also as Put does.
func (c *Client) Delete(ctx context.Context, in api.DeleteParams) (string, error) {
	return c.write(ctx, newRequest(api.Delete, in))
}

// Value is what a key holds.
type Value struct {
	Bytes   []byte
	Version string
	Expires string // RFC 3339; empty for never
	// Answers, where too few hosts have answered, is how many have: "1/3".
	Answers string
}

// Get reads a value. Where too few hosts have answered, the value beside the error is what was
// found, if its version is not empty.
func (c *Client) Get(ctx context.Context, ns string, key []byte, o api.ReadParams) (Value, error) {
	resp, few, err := c.send(ctx, newRequest(api.Get, api.GetParams{RecordParams: api.Record(ns, key), ReadParams: o}))
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

// Import sends lines.
func (c *Client) Import(ctx context.Context, in api.ImportParams, lines []byte) (api.ImportResult, error) {
	var out api.ImportResult
	err := c.change(ctx, newRequest(api.Import, in).with(bytes.NewReader(lines), "application/x-ndjson"), into(&out))
	return out, err
}

// RestoreKept writes an entry of a list again and forgets it.
func (c *Client) RestoreKept(ctx context.Context, list string, in api.KeptParams) (api.Restored, error) {
	var out api.Restored
	err := c.change(ctx, newRequest(api.RestoreKept(list), in), into(&out))
	return out, err
}

// Sync runs a sync. The report is meaningful beside an error.
func (c *Client) Sync(ctx context.Context, in api.SyncRequest) (api.Report, error) {
	out, err := Send(ctx, c, api.RunSync, in)
	var p *problem.Problem
	if errors.As(err, &p) && p.Report != nil {
		out = *p.Report
	}
	return out, err
}

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions, also beside an error where too few hosts have confirmed them. The list goes
// out as it is: bytes that are not UTF-8 are refused, and not replaced. The timeout, if
// not empty, is for how long the daemon waits for hosts.
func (c *Client) Batch(ctx context.Context, ns string, list []byte, timeout string) ([]string, error) {
	var out api.Versions
	in := api.BatchParams{NSParams: api.OfNS(ns), Timeout: timeout}
	err := c.change(ctx, newRequest(api.Batch, in).with(bytes.NewReader(list), "application/json"), into(&out))
	if p, ok := errors.AsType[*problem.Problem](err); ok && errors.Is(p, peer.ErrUnconfirmed) {
		return p.Versions, err
	}
	return out.Versions, err
}

// Wait waits until members hold what the daemon's node holds. What was found is
// meaningful beside an error.
func (c *Client) Wait(ctx context.Context, ns string, in api.WaitRequest) (status.Waited, error) {
	out, err := Ask(ctx, c, api.Wait, api.WaitParams{NSParams: api.OfNS(ns), Body: in})
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Waited != nil {
		out = *p.Waited
	}
	return out, err
}

// Locate says which members hold a key of a namespace of shards.
func (c *Client) Locate(ctx context.Context, ns string, key []byte, o api.ReadParams) (api.Located, error) {
	var out api.Located
	resp, few, err := c.send(ctx, newRequest(api.Locate, api.LocateParams{RecordParams: api.Record(ns, key), ReadParams: o}))
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if err := into(&out)(resp.Header, resp.Body); err != nil {
		return out, err
	}
	return out, few
}
