package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// changeGrace is for how long a write that is interrupted waits for its answer.
const changeGrace = 3 * time.Second

// UnansweredError ends a write that was sent, and not answered.
type UnansweredError struct {
	// Version is what was written, as the daemon said before its answer; empty: it is not
	// known whether anything was.
	Version string
	Err     error
}

func (e *UnansweredError) Error() string {
	if e.Version == "" {
		return e.Err.Error() + "; whether it is written is not known: read it before you write again"
	}
	return e.Err.Error() + "; it is written, as version " + e.Version + ", and not confirmed"
}

func (e *UnansweredError) Unwrap() error { return e.Err }

// change sends a request that writes, and has read take the answer. Where the command is
// interrupted it waits a moment for that. UnansweredError: none came.
func (c *Client) change(ctx context.Context, r request, read func(http.Header, io.Reader) error) error {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	sent, version, early := false, "", make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			select {
			case <-early:
			case <-time.After(changeGrace):
			case <-longer.Done():
			}
		}
		cancel()
	})
	defer stop()
	resp, err := c.do(httptrace.WithClientTrace(longer, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent = true },
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			if tag := strings.Trim(h.Get("ETag"), `"`); tag != "" && version == "" {
				version = tag
				close(early)
			}
			return nil
		},
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
	select {
	case <-early:
		return &UnansweredError{version, err}
	default:
		return &UnansweredError{"", err}
	}
}

// write sends a write of one record and returns its version, also beside an error where it is
// known.
func (c *Client) write(ctx context.Context, r request) (version string, err error) {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[api.EarlyHeader] = "1"
	err = c.change(ctx, r, func(h http.Header, _ io.Reader) error {
		version = strings.Trim(h.Get("ETag"), `"`)
		return nil
	})
	if u, ok := errors.AsType[*UnansweredError](err); ok {
		return u.Version, err
	}
	if p, ok := errors.AsType[*problem.Problem](err); ok && (p.Waited != nil || errors.Is(p, peer.ErrUnconfirmed)) {
		return p.Version, err
	}
	return version, err
}
