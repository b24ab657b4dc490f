// Package client speaks to a daemon's HTTP API. Its errors answer errors.Is
// as those of package peer do: what the daemon said comes back as the error
// that it was.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// dialTimeout bounds connecting to the daemon, which is on this machine.
const dialTimeout = 5 * time.Second

// maxProblem bounds the body of an error.
const maxProblem = 1 << 20

// Client is a connection to one daemon.
type Client struct {
	addr  endpoint.Addr
	base  string
	token string
	http  *http.Client
}

// New makes a client of the daemon at addr. The token is sent over TCP.
func New(addr endpoint.Addr, token string) *Client {
	c := &Client{addr: addr, base: "http://" + addr.Address, token: token}
	if addr.Network == "unix" {
		c.base = "http://syncd"
	}
	d := net.Dialer{Timeout: dialTimeout}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, addr.Network, addr.Address)
		},
		MaxIdleConnsPerHost: 4,
		DisableCompression:  true,
	}}
	return c
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call of the API.
type request struct {
	method string
	path   string // escaped
	query  url.Values
	header map[string]string
	body   io.Reader
	kind   string // content type of body
}

// do sends the request and returns a successful response; its body must be
// closed. Everything else is an error.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	resp, few, err := c.send(ctx, r)
	if few != nil {
		_ = resp.Body.Close() // what was found is not asked for
		return nil, few
	}
	return resp, err
}

// send is do, which also returns a response that has what was found beside few: too few hosts
// have answered.
func (c *Client) send(ctx context.Context, r request) (resp *http.Response, few, err error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, nil, problem.Usage("%w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err = c.http.Do(req)
	if err != nil {
		return nil, nil, c.unreached(ctx, err)
	}
	detail := resp.Header.Get(api.DetailHeader)
	if resp.StatusCode < 300 || detail != "" {
		resp.Body = &answer{resp.Body, func(err error) error { return c.unreached(ctx, err) }}
		if detail != "" {
			few = &problem.Problem{Status: resp.StatusCode, Code: problem.TooFew, Title: peer.ErrTooFew.Error(), Detail: detail}
		}
		return resp, few, nil
	}
	defer func(body io.Closer) { _ = body.Close() }(resp.Body) // read only
	return nil, nil, readProblem(resp)
}

// answer is the body of a response. Where it breaks off, the daemon is gone.
type answer struct {
	io.ReadCloser
	broke func(error) error
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.broke(err)
	}
	return n, err
}

// unreached says why no response came.
func (c *Client) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w on %s; start one with: syncd serve", problem.ErrNoDaemon, c.addr)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w: the connection to %s broke (%w); see the daemon's log", problem.ErrNoDaemon, c.addr, err)
}

func readProblem(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("the daemon answered %s, and then: %w", resp.Status, err)
	}
	var p problem.Problem
	if json.Unmarshal(raw, &p) != nil || p.Code == "" {
		return problem.FromStatus(resp.StatusCode, fmt.Sprintf("the daemon answered %s: %.200s", resp.Status, raw))
	}
	return &p
}

// call sends in as JSON, if it is not nil, and reads the answer into out.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	r := request{method: method, path: path, query: query}
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		r.body, r.kind = bytes.NewReader(b), "application/json"
	}
	resp, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if out == nil {
		return nil
	}
	return into(out)(resp.Header, resp.Body)
}

// ask is call with the answer that is read.
func ask[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (out T, err error) {
	err = c.call(ctx, method, path, query, in, &out)
	return out, err
}

// into reads an answer of JSON.
func into(out any) func(http.Header, io.Reader) error {
	return func(_ http.Header, body io.Reader) error {
		if err := json.NewDecoder(body).Decode(out); err != nil {
			return fmt.Errorf("reading the daemon's answer: %w", err)
		}
		return nil
	}
}

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

// set adds them to a query.
func (o AckOptions) set(q url.Values) {
	if o.Ack != "" {
		q.Set("ack", o.Ack)
	}
	if o.Timeout != "" {
		q.Set("timeout", o.Timeout)
	}
}

// Put writes a value and returns its version, also beside an error where it is written.
func (c *Client) Put(ctx context.Context, ns string, key []byte, value io.Reader, o PutOptions, cond Condition) (string, error) {
	r := request{
		method: http.MethodPut, path: api.KeyPath(ns, key), header: cond.header(), body: value, kind: "application/octet-stream",
	}
	r.query = url.Values{}
	if o.TTL != 0 {
		r.query.Set("ttl", o.TTL.String())
	}
	o.set(r.query)
	return c.write(ctx, r)
}

// Delete makes a record a tombstone and returns its version, also as Put does.
func (c *Client) Delete(ctx context.Context, ns string, key []byte, o AckOptions, cond Condition) (string, error) {
	r := request{method: http.MethodDelete, path: api.KeyPath(ns, key), header: cond.header(), query: url.Values{}}
	o.set(r.query)
	return c.write(ctx, r)
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

func (o GetOptions) query() url.Values {
	q := url.Values{}
	if o.Read != "" {
		q.Set("read", o.Read)
	}
	if o.AtLeast != "" {
		q.Set("at_least", o.AtLeast)
	}
	if o.Timeout != "" {
		q.Set("timeout", o.Timeout)
	}
	return q
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
	q := url.Values{"limit": {fmt.Sprint(limit)}}
	if len(prefix) > 0 {
		q.Set("prefix", string(prefix))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return ask[api.KeyList](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/keys", q, nil)
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
	query := url.Values{"line": {fmt.Sprint(max(o.Line, 1))}}
	if o.Ack != "" {
		query.Set("ack", o.Ack)
	}
	if o.AsNew {
		query.Set("as_new", "true")
	}
	if o.Rejects > 0 {
		query.Set("rejects", fmt.Sprint(o.Rejects))
	}
	if o.Earliest != nil {
		query.Set("earliest", o.Earliest.UTC().Format(time.RFC3339Nano))
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
