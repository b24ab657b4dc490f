// Package client speaks to a daemon's HTTP API: Ask sends what a route of package
// api takes. What is written, or is no JSON, has a method. Errors answer errors.Is
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
	"reflect"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
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
	header http.Header
	json   any // the body, if it is JSON
	body   io.Reader
}

// newRequest is a request by a route. A parameter that has the zero value is not given.
func newRequest[In, Out any](route api.Route[In, Out], in In) request {
	method, path, _ := strings.Cut(route.Pattern, " ")
	r := request{method: method, path: path, query: url.Values{}, header: http.Header{}}
	v := reflect.ValueOf(in)
	for _, f := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		switch param, query, header := f.Tag.Get("path"), f.Tag.Get("query"), f.Tag.Get("header"); {
		case param != "":
			r.path = strings.Replace(r.path, "{"+param+"}", api.Escape(textOf(value)), 1)
		case f.Name == "Body":
			r.json = value.Interface()
		case value.IsZero():
		case query != "":
			r.query.Set(query, textOf(value))
		case header != "":
			r.header.Set(header, textOf(value))
		}
	}
	return r
}

// with is the request with a body of a type.
func (r request) with(body io.Reader, kind string) request {
	r.body = body
	r.header.Set("Content-Type", kind)
	return r
}

// textOf is a parameter as it travels.
func textOf(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
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
	if r.json != nil {
		b, err := json.Marshal(r.json)
		if err != nil {
			return nil, nil, err
		}
		r = r.with(bytes.NewReader(b), "application/json")
	}
	target := c.base + r.path
	if query := r.query.Encode(); query != "" {
		target += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, nil, problem.Usage("%w", err)
	}
	req.Header = r.header
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

// Ask sends a request by a route, and reads the JSON of the answer, if it is to have any.
func Ask[In, Out any](ctx context.Context, c *Client, route api.Route[In, Out], in In) (out Out, err error) {
	resp, err := c.do(ctx, newRequest(route, in))
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if resp.StatusCode != http.StatusNoContent {
		err = into(&out)(resp.Header, resp.Body)
	}
	return out, err
}

// Send is Ask of a route whose parameters are a body alone.
func Send[Body, Out any](ctx context.Context, c *Client, route api.Route[api.WithBody[Body], Out], body Body) (Out, error) {
	return Ask(ctx, c, route, api.WithBody[Body]{Body: body})
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
