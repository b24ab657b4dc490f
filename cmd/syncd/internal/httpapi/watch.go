package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Watches are streams of server-sent events (WHATWG HTML, section 9.2).
const (
	eventsType = "text/event-stream"
	// beat is how long a watch is silent at most, so that both ends notice a connection
	// that is gone, and proxies keep it.
	beat = 15 * time.Second
)

type watchInput struct {
	api.WatchParams
	RawRequest
}

type watchFromInput struct {
	api.WatchFromParams
	RawRequest
}

func (s *server) registerWatch() {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Event](), true, "Event")
	events := map[string]*huma.Response{"200": {
		Description: "The events; the schema is that of the data of each", Content: map[string]*huma.MediaType{eventsType: {Schema: schema}},
	}}
	op := operation(api.Watch)
	op.Responses = events
	serve(s, op, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *watchInput) (*huma.StreamResponse, error) {
		return s.stream(ctx, ns, cmp.Or(in.Last, in.Since), in.Prefix, newEventWriter(in.write, true))
	}))
	op = operation(api.WatchFrom)
	op.Responses, op.MaxBodyBytes = events, api.MaxWatchBody
	serve(s, op, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *watchFromInput) (*huma.StreamResponse, error) {
		return s.stream(ctx, ns, in.Body.Since, in.Prefix, newEventWriter(in.write, false))
	}))
}

// stream is the answer to a watch.
func (s *server) stream(ctx context.Context, ns *peer.Namespace, cursor, prefix string, out *eventWriter) (*huma.StreamResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.Ending != nil {
		go func() {
			select {
			case <-s.Ending:
				cancel(peer.ErrClosed)
			case <-ctx.Done():
			}
		}()
	}
	next, stop := iter.Pull2(ns.Watch(ctx, peer.Cursor(cursor), peer.WithPrefix([]byte(prefix)), peer.WithProgress(beat), peer.BeforeWait(out.flush)))
	// With the first event it is known that the cursor is good.
	first, err, _ := next()
	if err != nil {
		stop()
		cancel(nil)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer cancel(nil)
		defer stop()
		defer out.end()
		h.SetHeader("Content-Type", eventsType)
		h.SetHeader("Cache-Control", "no-store")
		out.event(&first)
		for out.err == nil {
			e, err, ok := next()
			switch {
			case !ok:
				return
			case err != nil && context.Cause(ctx) != nil:
				out.failed(fmt.Errorf("watch %s: %w", ns.Name(), context.Cause(ctx)))
				return
			case err != nil:
				out.failed(err)
				return
			}
			out.event(&e)
		}
	}}, nil
}

// eventWriter writes events. A client that is too slow is cut, and goes on from its last cursor.
type eventWriter struct {
	stream
	last peer.Cursor
	ids  bool // each event has its cursor as its id, too
}

func newEventWriter(w http.ResponseWriter, ids bool) *eventWriter {
	return &eventWriter{stream: newStream(w), ids: ids}
}

func (o *eventWriter) event(e *peer.Event) {
	if e.Kind == peer.EventAt && e.Cursor == o.last {
		fmt.Fprintf(o, ":\n\n")
		return
	}
	o.last = e.Cursor
	b, err := json.Marshal(api.EventOf(e))
	if err != nil {
		o.err = err
		return
	}
	if o.ids {
		fmt.Fprintf(o, "id: %s\n", e.Cursor)
	}
	fmt.Fprintf(o, "event: %s\ndata: %s\n\n", e.Kind, b)
}

// failed writes an error, as the last event.
func (o *eventWriter) failed(err error) {
	b, err := json.Marshal(problem.From(fail(err)))
	if err != nil {
		return
	}
	fmt.Fprintf(o, "event: error\ndata: %s\n\n", b)
}
