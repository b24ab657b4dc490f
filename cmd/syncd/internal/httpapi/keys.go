package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// maxPage bounds a page of keys.
const maxPage = 10_000

// namespace finds a namespace by its local name.
func (s *server) namespace(name string) (*peer.Namespace, error) {
	ns, err := s.Node.Namespace(name)
	if errors.Is(err, peer.ErrNotFound) {
		return nil, problem.From(fmt.Errorf("namespace %q: %w", name, problem.ErrNoNamespace))
	}
	return ns, fail(err)
}

// fail turns an error into a response; nil stays nil.
func fail(err error) error {
	if err == nil {
		return nil
	}
	return problem.From(err)
}

// key is the key's bytes, which flattenKeys has made base64.
func (p *RecordParams) key() ([]byte, error) {
	key, err := base64.RawURLEncoding.DecodeString(p.Key)
	if err != nil {
		return nil, fail(problem.Usage("the key %q: %w", p.Key, err))
	}
	return key, nil
}

// RawRequest hands a handler the body as it comes.
type RawRequest struct {
	body  io.ReadCloser
	write http.ResponseWriter
}

// Resolve is called by huma before the handler.
func (b *RawRequest) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	b.body, b.write = r.Body, w
	return nil
}

var _ huma.Resolver = (*RawRequest)(nil)

// RecordParams name a record.
type RecordParams struct {
	NS      string `path:"ns" doc:"the namespace's local name"`
	Key     string `path:"key" doc:"the key's bytes, percent-encoded"`
	IfMatch string `header:"If-Match" doc:"the ETag that the record held must have; * demands that there is a record"`
}

type putInput struct {
	RecordParams
	IfNoneMatch string `header:"If-None-Match" doc:"* demands that there is no record, not even a deleted one"`
	RawRequest
}

type versionOutput struct {
	ETag string `header:"ETag"`
	Body api.Version
}

func newVersionOutput(v dbadapter.Version) *versionOutput {
	return &versionOutput{etag(v), api.Version{Version: v.String()}}
}

type valueOutput struct {
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Modified    string `header:"Last-Modified"`
	Body        []byte
}

func etag(v dbadapter.Version) string { return `"` + v.String() + `"` }

// parseETag reads an If-Match header: one strong ETag, with or without its
// quotes.
func parseETag(s string) (dbadapter.Version, error) {
	v, err := dbadapter.ParseVersion(strings.Trim(s, `"`))
	if err != nil {
		return v, problem.From(problem.Usage("If-Match: %w", err))
	}
	return v, nil
}

var octets = map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}

func (s *server) registerKeys() {
	const path = "/v1/ns/{ns}/keys/{key}"
	huma.Register(s.api, huma.Operation{
		OperationID: "get", Method: http.MethodGet, Path: path, Summary: "Read a value",
		Description: "404: there is no such key. 410: it was deleted, and the ETag is the version of the tombstone.",
		Responses:   map[string]*huma.Response{"200": {Description: "The value; the ETag is its version", Content: octets}},
	}, s.get)
	huma.Register(s.api, huma.Operation{
		OperationID: "put", Method: http.MethodPut, Path: path, Summary: "Write a value",
		Description: "Answers once the write is durable. 412: the record held has another version than If-Match says.",
		RequestBody: &huma.RequestBody{Description: "The value", Content: octets},
	}, s.put)
	huma.Register(s.api, huma.Operation{
		OperationID: "delete", Method: http.MethodDelete, Path: path, Summary: "Delete a record",
		Description: "The record becomes a tombstone, which syncs carry on.",
	}, s.del)
	huma.Register(s.api, huma.Operation{
		OperationID: "list", Method: http.MethodGet, Path: "/v1/ns/{ns}/keys", Summary: "List keys, in the order of their bytes",
	}, s.list)
}

func (s *server) get(ctx context.Context, in *RecordParams) (*valueOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	key, err := in.key()
	if err != nil {
		return nil, err
	}
	rec, err := ns.Get(ctx, key)
	if errors.Is(err, peer.ErrDeleted) {
		// The tombstone's version, for who wants to write over it.
		return nil, huma.ErrorWithHeaders(fail(err), http.Header{"ETag": {etag(rec.Version)}})
	}
	if err != nil {
		return nil, fail(err)
	}
	if rec.Value == nil {
		rec.Value = []byte{} // a nil body would be no body
	}
	return &valueOutput{
		ContentType: "application/octet-stream",
		ETag:        etag(rec.Version),
		Modified:    rec.Version.Clock.Time().Format(http.TimeFormat),
		Body:        rec.Value,
	}, nil
}

func (s *server) put(ctx context.Context, in *putInput) (*versionOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	key, err := in.key()
	if err != nil {
		return nil, err
	}
	value, err := io.ReadAll(http.MaxBytesReader(in.write, in.body, dbadapter.MaxValue))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, fail(fmt.Errorf("put %.200q in %s: %w: a value has at most %d bytes", key, in.NS, peer.ErrLimit, dbadapter.MaxValue))
	case err != nil:
		return nil, fail(problem.Usage("reading the value: %w", err))
	}
	var v dbadapter.Version
	switch {
	case in.IfMatch != "" && in.IfNoneMatch != "":
		return nil, fail(problem.Usage("If-Match and If-None-Match exclude one another"))
	case in.IfMatch == "*":
		v, err = overHeld(ctx, ns, key, func(held dbadapter.Version) (dbadapter.Version, error) {
			return ns.PutIf(ctx, key, value, held)
		})
	case in.IfMatch != "":
		held, err := parseETag(in.IfMatch)
		if err != nil {
			return nil, err
		}
		v, err = ns.PutIf(ctx, key, value, held)
		if err != nil {
			return nil, fail(err)
		}
	case in.IfNoneMatch == "*":
		v, err = ns.PutIf(ctx, key, value, dbadapter.Version{})
	case in.IfNoneMatch != "":
		return nil, fail(problem.Usage("If-None-Match: only * is understood"))
	default:
		v, err = ns.Put(ctx, key, value)
	}
	if err != nil {
		return nil, fail(err)
	}
	return newVersionOutput(v), nil
}

func (s *server) del(ctx context.Context, in *RecordParams) (*versionOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	key, err := in.key()
	if err != nil {
		return nil, err
	}
	var v dbadapter.Version
	switch in.IfMatch {
	case "":
		v, err = ns.Delete(ctx, key)
	case "*":
		v, err = overHeld(ctx, ns, key, func(held dbadapter.Version) (dbadapter.Version, error) {
			return ns.DeleteIf(ctx, key, held)
		})
	default:
		held, bad := parseETag(in.IfMatch)
		if bad != nil {
			return nil, bad
		}
		v, err = ns.DeleteIf(ctx, key, held)
	}
	if err != nil {
		return nil, fail(err)
	}
	return newVersionOutput(v), nil
}

// maxRetries bounds the races that one write over any version may lose.
const maxRetries = 10

// overHeld writes over whatever record is there, as If-Match: * demands (RFC
// 9110, section 13.1.1). ErrConflict: there is none, or only a tombstone.
func overHeld(ctx context.Context, ns *peer.Namespace, key []byte, write func(held dbadapter.Version) (dbadapter.Version, error)) (dbadapter.Version, error) {
	for range maxRetries {
		rec, err := ns.Get(ctx, key)
		if errors.Is(err, peer.ErrNotFound) || errors.Is(err, peer.ErrDeleted) {
			return dbadapter.Version{}, fmt.Errorf("write over %.200q in %s: %w: there is no record", key, ns.Name(), peer.ErrConflict)
		}
		if err != nil {
			return dbadapter.Version{}, err
		}
		v, err := write(rec.Version)
		if !errors.Is(err, peer.ErrConflict) {
			return v, err
		}
	}
	return dbadapter.Version{}, fmt.Errorf("write over %.200q in %s: %w again and again; try again", key, ns.Name(), peer.ErrBusy)
}

type listInput struct {
	NS     string `path:"ns" doc:"the namespace's local name"`
	Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	Cursor string `query:"cursor" doc:"the cursor of the page before"`
	Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many keys at most"`
}

type listOutput struct{ Body api.KeyList }

func (s *server) list(ctx context.Context, in *listInput) (*listOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil {
		return nil, fail(problem.Usage("the cursor %q is not one of this API's", in.Cursor))
	}
	out := &listOutput{Body: api.KeyList{Keys: []api.KeyInfo{}}}
	limit := min(in.Limit, maxPage)
	for rec, err := range ns.Scan(ctx, []byte(in.Prefix), peer.After(after)) {
		if err != nil {
			return nil, fail(err)
		}
		if len(out.Body.Keys) == limit {
			last := out.Body.Keys[limit-1].Bytes()
			out.Body.Cursor = base64.RawURLEncoding.EncodeToString(last)
			break
		}
		out.Body.Keys = append(out.Body.Keys, api.KeyInfoOf(&rec))
	}
	return out, nil
}
