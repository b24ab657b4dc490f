package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// namespace finds a namespace by its local name.
func (s *server) namespace(name string) (*peer.Namespace, error) {
	ns, err := s.Node.Namespace(name)
	if errors.Is(err, peer.ErrNotFound) {
		return nil, problem.From(fmt.Errorf("namespace %q: %w", name, problem.ErrNoNamespace))
	}
	return ns, fail(err)
}

// fail turns an error into a response; nil stays nil. A request is cancelled
// when its client is gone, which reads no answer, or when the daemon ends.
func fail(err error) error {
	_, told := errors.AsType[huma.HeadersError](err)
	switch {
	case err == nil, told:
		return err
	case errors.Is(err, context.Canceled):
		return problem.From(fmt.Errorf("%w: the request was cut", peer.ErrClosed))
	}
	return problem.From(err)
}

// ofRecord finds the namespace and the key's bytes, which flattenKeys has made base64.
func ofRecord[In interface {
	Namespace() string
	Base64() string
}, Out any](s *server, do func(context.Context, *peer.Namespace, []byte, *In) (Out, error)) func(context.Context, *In) (Out, error) {
	return ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *In) (out Out, err error) {
		key, err := base64.RawURLEncoding.DecodeString((*in).Base64())
		if err != nil {
			return out, problem.Usage("the key %q: %w", (*in).Base64(), err)
		}
		return do(ctx, ns, key, in)
	})
}

// getOptions are those of a read.
func getOptions(p *api.ReadParams) (all []peer.GetOption, err error) {
	if p.Read != "" {
		var l peer.Level
		if err := l.UnmarshalText([]byte(p.Read)); err != nil {
			return nil, fmt.Errorf("read: %w: not a level: %q: want one, quorum or all", peer.ErrInvalid, p.Read)
		}
		all = append(all, peer.Read(l))
	}
	if p.AtLeast != "" {
		v, err := dbadapter.ParseVersion(strings.Trim(p.AtLeast, `"`))
		if err != nil {
			return nil, problem.Usage("at_least: %w", err)
		}
		all = append(all, peer.AtLeast(v))
	}
	return all, nil
}

// putInput has no Patience: the time of a put begins when its value is here.
type putInput struct {
	api.PutParams
	RawRequest
}

type versionOutput struct {
	ETag string `header:"ETag"`
	Body api.Version
}

type valueOutput struct {
	Status      int
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Modified    string `header:"Last-Modified"`
	Expires     string `header:"Expires"`
	ExpiresAt   string `header:"Syncd-Expires"`
	Answers     string `header:"Syncd-Answers"`
	Detail      string `header:"Syncd-Detail"`
	Body        []byte
}

func etag(v dbadapter.Version) string { return `"` + v.String() + `"` }

// namesETag tells whether an If-None-Match header names an ETag (RFC 9110,
// section 13.1.2). Weak comparison is enough: versions stand for bytes.
func namesETag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || one == tag || `"`+one+`"` == tag {
			return true
		}
	}
	return false
}

// octets are bytes. Each server has its own: registration writes into a schema.
func octets() map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}
}

func (s *server) registerKeys() {
	op := operation(api.Get)
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The value; the ETag is its version. Of a record that expires, the headers Expires and Syncd-Expires (RFC 3339, to the millisecond) say when.", Content: octets()},
		"304": {Description: "The value is that of one of the ETags in If-None-Match"},
		"503": {Description: "Too few hosts of the key's shard have answered, as the header Syncd-Answers says (1/3). The body is the value that was found, its version the ETag, and the header Syncd-Detail says more; where none was found, it is a problem", Content: octets()},
	}
	serve(s, op, ofRecord(s, s.get))
	op = operation(api.Put)
	op.RequestBody = &huma.RequestBody{Description: "The value", Content: octets()}
	serve(s, op, ofRecord(s, s.put))
	serve(s, operation(api.Delete), ofRecord(s, s.del))
	answers(s, api.ListKeys, ofNamespace(s, s.list))
}

func (s *server) get(ctx context.Context, ns *peer.Namespace, key []byte, in *api.GetParams) (*valueOutput, error) {
	options, err := getOptions(&in.ReadParams)
	if err != nil {
		return nil, err
	}
	rec, err := ns.Get(ctx, key, options...)
	few, headers := tooFew(err)
	at := api.ExpiryOf(&rec)
	switch {
	case few && !rec.Version.IsZero() && !rec.Deleted && (at.IsZero() || time.Now().Before(at)):
		out := valueOf(&rec, "")
		out.Status, out.Answers, out.Detail = http.StatusServiceUnavailable, headers.Get(api.AnswersHeader), detail(err)
		return out, nil
	case absent(err) || few:
		p := *problem.From(err)
		if !rec.Version.IsZero() { // for a conditional write over it
			p.Version = rec.Version.String()
			headers.Set("ETag", etag(rec.Version))
		}
		return nil, huma.ErrorWithHeaders(&p, headers)
	case err != nil:
		return nil, err
	}
	return valueOf(&rec, in.IfNoneMatch), nil
}

// tooFew reports whether too few hosts have answered, with the header that says how many.
func tooFew(err error) (bool, http.Header) {
	h := http.Header{}
	few, ok := errors.AsType[*status.TooFew](err)
	if ok {
		h.Set(api.AnswersHeader, few.Answers)
	}
	return ok, h
}

// detail is an error in a header, bounded as clients bound what they read of those.
func detail(err error) string { return fmt.Sprintf("%.*s", 4<<10, api.Printable(err.Error())) }

// valueOf is the answer to a read that has found a record.
func valueOf(rec *dbadapter.Record, ifNoneMatch string) *valueOutput {
	out := &valueOutput{ETag: etag(rec.Version)}
	if namesETag(ifNoneMatch, out.ETag) {
		out.Status = http.StatusNotModified
		return out
	}
	out.Status, out.ContentType = http.StatusOK, "application/octet-stream"
	out.Modified = rec.Version.Clock.Time().Format(http.TimeFormat)
	if out.Body = rec.Value; out.Body == nil {
		out.Body = []byte{} // a nil body would be no body
	}
	if at := api.ExpiryOf(rec); !at.IsZero() {
		out.Expires, out.ExpiresAt = at.Format(http.TimeFormat), at.Format(time.RFC3339Nano)
	}
	return out
}

// absent reports whether the key holds what reads as absent.
func absent(err error) bool {
	return errors.Is(err, peer.ErrDeleted) || errors.Is(err, peer.ErrExpired)
}

func (s *server) put(ctx context.Context, ns *peer.Namespace, key []byte, in *putInput) (*versionOutput, error) {
	ttl, err := duration("ttl", in.TTL)
	if err != nil {
		return nil, err
	}
	options, err := options(ttl, in.Ack)
	if err != nil {
		return nil, err
	}
	value, err := io.ReadAll(http.MaxBytesReader(in.write, in.body, dbadapter.MaxValue))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, fmt.Errorf("put %.200q in %s: %w: a value has at most %d bytes", key, in.NS, peer.ErrLimit, dbadapter.MaxValue)
	case err != nil:
		return nil, problem.Usage("reading the value: %w", err)
	}
	ctx, cancel, err := within(ctx, in.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	var v dbadapter.Version
	switch {
	case in.IfMatch != "" && in.IfNoneMatch != "":
		return nil, problem.Usage("If-Match and If-None-Match exclude one another")
	case in.IfNoneMatch != "" && in.IfNoneMatch != "*":
		return nil, problem.Usage("If-None-Match: only * is understood in a write")
	case in.IfNoneMatch == "*":
		v, err = ns.PutIf(ctx, key, value, dbadapter.Version{}, options...)
	case in.IfMatch == "":
		v, err = ns.Put(ctx, key, value, options...)
	default:
		v, err = s.ifMatch(ctx, ns, key, in.IfMatch, func(held dbadapter.Version) (dbadapter.Version, error) {
			return ns.PutIf(ctx, key, value, held, options...)
		})
	}
	return written(ctx, ns, key, v, err)
}

// options are those of a write.
func options(ttl time.Duration, ack string) (all []peer.PutOption, err error) {
	if ttl != 0 {
		all = append(all, peer.TTL(ttl))
	}
	if ack == "" {
		return all, nil
	}
	var a peer.Level
	if err := a.UnmarshalText([]byte(ack)); err != nil {
		return nil, err
	}
	return append(all, peer.Ack(a)), nil
}

func (s *server) del(ctx context.Context, ns *peer.Namespace, key []byte, in *api.DeleteParams) (*versionOutput, error) {
	options, err := options(0, in.Ack)
	if err != nil {
		return nil, err
	}
	var v dbadapter.Version
	if in.IfMatch == "" {
		v, err = ns.Delete(ctx, key, options...)
	} else {
		v, err = s.ifMatch(ctx, ns, key, in.IfMatch, func(held dbadapter.Version) (dbadapter.Version, error) {
			return ns.DeleteIf(ctx, key, held, options...)
		})
	}
	return written(ctx, ns, key, v, err)
}

// written is the answer to a write. Where the condition did not hold, it names
// the version that is held now, so that a program need not read it.
func written(ctx context.Context, ns *peer.Namespace, key []byte, v dbadapter.Version, err error) (*versionOutput, error) {
	if err == nil {
		return &versionOutput{etag(v), api.Version{Version: v.String()}}, nil
	}
	p := *problem.From(fail(err))
	if errors.Is(err, peer.ErrUnconfirmed) && !errors.Is(err, peer.ErrConflict) {
		p.Version = v.String()
		return nil, huma.ErrorWithHeaders(&p, http.Header{"ETag": {etag(v)}})
	}
	if !errors.Is(err, peer.ErrConflict) && !absent(err) {
		return nil, &p
	}
	var held dbadapter.Version
	if conflict, ok := errors.AsType[*dbadapter.ConflictError](err); ok {
		held = conflict.Held
	} else {
		record, got := ns.Get(ctx, key)
		if got != nil && !absent(got) {
			return nil, &p
		}
		held = record.Version
	}
	if held.IsZero() {
		return nil, &p
	}
	p.Version = held.String()
	return nil, huma.ErrorWithHeaders(&p, http.Header{"ETag": {etag(held)}})
}

// ifMatch writes if the record held is what an If-Match header demands.
func (s *server) ifMatch(ctx context.Context, ns *peer.Namespace, key []byte, header string, write func(held dbadapter.Version) (dbadapter.Version, error)) (dbadapter.Version, error) {
	if header == "*" {
		return overHeld(ctx, ns, key, write)
	}
	held, err := dbadapter.ParseVersion(strings.Trim(header, `"`)) // one strong ETag, with or without its quotes
	if err != nil {
		return held, problem.Usage("If-Match: %w", err)
	}
	return write(held)
}

// maxRetries bounds the races that one write over any version may lose.
const maxRetries = 10

// overHeld writes over whatever record is there, as If-Match: * demands (RFC
// 9110, section 13.1.1). ErrConflict: there is no record, or only one that was
// deleted or has expired.
func overHeld(ctx context.Context, ns *peer.Namespace, key []byte, write func(held dbadapter.Version) (dbadapter.Version, error)) (dbadapter.Version, error) {
	for range maxRetries {
		rec, err := ns.Get(ctx, key)
		if errors.Is(err, peer.ErrNotFound) || absent(err) {
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

// maxPage bounds a page of keys.
const maxPage = 10_000

func (s *server) list(ctx context.Context, ns *peer.Namespace, in *api.ListParams) (out api.KeyList, err error) {
	after, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil {
		return out, problem.Usage("the cursor %q is not one of this API's", in.Cursor)
	}
	out.Keys = []api.KeyInfo{}
	limit := min(in.Limit, maxPage)
	size := 0
	for rec, err := range ns.Scan(ctx, []byte(in.Prefix), peer.After(after), peer.Sizes(&size)) {
		if err != nil {
			return out, err
		}
		if len(out.Keys) == limit {
			last := out.Keys[limit-1].Bytes()
			out.Cursor = base64.RawURLEncoding.EncodeToString(last)
			break
		}
		out.Keys = append(out.Keys, api.KeyInfoOf(&rec, size))
	}
	return out, nil
}

// keyKinds are the routes whose path ends with a key, by what stands before it.
var keyKinds = map[string]string{"keys": "keys", "key64": "keys", "why": "why", "why64": "why", "locate": "locate", "locate64": "locate"}

// splitKeyPath cuts an escaped path /v1/ns/{ns}/keys/{key}, /why/{key} or /locate/{key}, in two: the
// part up to the key, still escaped, and the key's bytes. ok is false for all
// other paths.
func splitKeyPath(escaped string) (head string, key []byte, ok bool, err error) {
	parts := strings.SplitN(escaped, "/", 6)
	if len(parts) < 6 || !strings.HasPrefix(escaped, "/v1/ns/") || parts[3] == "" || parts[5] == "" || keyKinds[parts[4]] == "" {
		return "", nil, false, nil
	}
	head = "/v1/ns/" + parts[3] + "/" + keyKinds[parts[4]] + "/"
	if strings.HasSuffix(parts[4], "64") {
		if key, err = base64.RawURLEncoding.Strict().DecodeString(parts[5]); err != nil {
			return "", nil, true, problem.Usage("the key in %s: %w (URL-safe alphabet, no padding)", escaped, err)
		}
		return head, key, true, nil
	}
	text, err := url.PathUnescape(parts[5])
	if err != nil {
		return "", nil, true, problem.Usage("the key in %s: %w", escaped, err)
	}
	return head, []byte(text), true, nil
}

// flattenKeys puts base64 in the place of a key in a path, so that
// http.ServeMux sees one plain segment: it cleans paths, splits them at
// slashes, and takes an escaped slash that stands alone for the path's end.
func flattenKeys(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head, key, ok, err := splitKeyPath(r.URL.EscapedPath())
		if err != nil {
			writeProblem(w, problem.From(err))
			return
		}
		if ok {
			plain, err := url.PathUnescape(head)
			if err != nil {
				writeProblem(w, problem.From(problem.Usage("the path %s: %w", head, err)))
				return
			}
			u := *r.URL
			flat := base64.RawURLEncoding.EncodeToString(key)
			u.Path, u.RawPath = plain+flat, head+flat
			r2 := *r
			r2.URL = &u
			r = &r2
		}
		next.ServeHTTP(w, r)
	})
}
