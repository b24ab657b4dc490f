package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// changeGrace is for how long a write that is interrupted waits for its answer.
const changeGrace = 3 * time.Second

// UnansweredError ends a write that was sent, and not answered: it is not known whether anything
// was written.
type UnansweredError struct{ Err error }

func (e *UnansweredError) Error() string {
	return e.Err.Error() + "; whether it is written is not known: read it before you write again"
}

func (e *UnansweredError) Unwrap() error { return e.Err }

// change sends a request that writes, and has read take the answer. Where the command is
// interrupted it waits a moment for that. UnansweredError: none came.
func (c *Client) change(ctx context.Context, r request, read func(http.Header, io.Reader) error) error {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	sent := false
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			select {
			case <-time.After(changeGrace):
			case <-longer.Done():
			}
		}
		cancel()
	})
	defer stop()
	resp, err := c.do(httptrace.WithClientTrace(longer, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent = true },
	}), r)
	if err == nil {
		defer func() { _ = resp.Body.Close() }() // read only
		err = read(resp.Header, resp.Body)
	}
	if _, answered := errors.AsType[*problem.Problem](err); err == nil || answered {
		return err
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if !sent {
		return err
	}
	return &UnansweredError{err}
}

// write sends a write of one record and returns its version, also beside an error where it is
// known.
func (c *Client) write(ctx context.Context, r request) (version string, err error) {
	err = c.change(ctx, r, func(h http.Header, _ io.Reader) error {
		version = strings.Trim(h.Get("ETag"), `"`)
		return nil
	})
	if p, ok := errors.AsType[*problem.Problem](err); ok && errors.Is(p, peer.ErrUnconfirmed) {
		return p.Version, err
	}
	return version, err
}
