package httpapi

import (
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
	NS     string `path:"ns" doc:"the namespace's local name"`
	Since  string `query:"since" doc:"the cursor of an event, behind which the watch goes on; start: what is held comes first, and an event at; absent: from now on"`
	Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	Last   string `header:"Last-Event-ID" doc:"as since, which it takes the place of: the cursor of the last event, as browsers send it when they connect again"`
	RawRequest
}

type watchBody struct {
	NS     string `path:"ns" doc:"the namespace's local name"`
	Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	Body   api.WatchRequest
	RawRequest
}

func (s *server) registerWatch() {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Event](), true, "Event")
	events := map[string]*huma.Response{"200": {
		Description: "The events; the schema is that of the data of each", Content: map[string]*huma.MediaType{eventsType: {Schema: schema}},
	}}
	huma.Register(s.api, huma.Operation{
		OperationID: "watch", Method: http.MethodGet, Path: "/v1/ns/{ns}/watch", Summary: "Watch what changes",
		Description: "Server-sent events: each key's latest change behind the cursor, in the order of the commits, and then those to come, whoever wrote them. " +
			"The event's type is its kind, its id the cursor, its data the JSON. The first one comes at once, and at least one of kind at, or a comment, each 15 seconds. " +
			"410: the cursor has expired; watch from start. What goes wrong later comes as an event of the type error, whose data is a problem.",
		Responses: events,
	}, s.watch)
	huma.Register(s.api, huma.Operation{
		OperationID: "watch-from", Method: http.MethodPost, Path: "/v1/ns/{ns}/watch", Summary: "Watch what changes behind a long cursor",
		Description: "As the GET; the cursor is in the body, since that of a namespace of many shards is longer than an address may be. Its events have no id.",
		Responses:   events, MaxBodyBytes: api.MaxWatchBody, BodyReadTimeout: -1, // it would end the stream
	}, s.watchFrom)
}

func (s *server) watch(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	cursor := in.Since
	if in.Last != "" {
		cursor = in.Last
	}
	return s.stream(ctx, in.NS, cursor, in.Prefix, newEventWriter(in.write, true))
}

func (s *server) watchFrom(ctx context.Context, in *watchBody) (*huma.StreamResponse, error) {
	return s.stream(ctx, in.NS, in.Body.Since, in.Prefix, newEventWriter(in.write, false))
}

// stream is the answer to a watch.
func (s *server) stream(ctx context.Context, name, cursor, prefix string, out *eventWriter) (*huma.StreamResponse, error) {
	ns, err := s.namespace(name)
	if err != nil {
		return nil, err
	}
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
		return nil, fail(err)
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
				out.failed(fmt.Errorf("watch %s: %w", name, context.Cause(ctx)))
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
