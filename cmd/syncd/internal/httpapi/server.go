// Package httpapi is the daemon's HTTP interface: a node's records,
// namespaces, peers and syncs as resources, described by OpenAPI 3.1 at
// /openapi.json, with errors after RFC 9457.
//
// A key in a path is any bytes, percent-encoded; all that follows /keys/ is
// the key, so that an unescaped slash belongs to it:
//
//	PUT /v1/ns/notes/keys/a%2Fb
//	PUT /v1/ns/notes/keys/%FF
//
// Clients that rewrite "." and ".." in paths, as browsers do, can give those
// two keys as key64, base64 in the URL-safe alphabet: /v1/ns/notes/key64/Lg.
//
// The interface has the rights of the node itself. It is served on a unix
// socket of mode 0600, and on loopback addresses to holders of a bearer token.
package httpapi

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/peer"
)

// Config says what is served.
type Config struct {
	Node *peer.Node
	// Version is the program's, for /v1/version and the API's description.
	Version api.Program
	// Token, if not empty, is demanded as a bearer token of what comes over TCP.
	Token string
	// Metrics are served at /metrics.
	Metrics prometheus.Gatherer
	Logger  *slog.Logger
	// Ending is closed when the daemon begins to shut down: watches end then, and it is not ready. nil: never.
	Ending <-chan struct{}
}

// idleBody is how long a client may pause within a request's body.
const idleBody = time.Minute

type server struct {
	Config
	mux     *http.ServeMux
	api     huma.API
	running running
}

// Handler serves the API.
func Handler(cfg Config) (http.Handler, error) {
	s := &server{Config: cfg, mux: http.NewServeMux()}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	config := huma.DefaultConfig("syncd", cfg.Version.Version)
	config.Info.Description = "Keeps sets of records equal on many machines. " +
		"The API of one node; errors are application/problem+json with a stable code."
	config.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	config.Servers = []*huma.Server{{URL: "/", Description: "The daemon that serves this description"}}
	config.OpenAPI.OpenAPI = "3.1.0"
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Formats = map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	config.RejectUnknownQueryParameters = true
	config.Transformers = []huma.Transformer{asProblem}
	s.api = humago.New(s.mux, config)
	s.registerHealth()
	s.registerKeys()
	s.registerBatch()
	s.registerLines()
	s.registerWatch()
	s.registerWhy()
	s.registerNamespaces()
	s.registerMembers()
	s.registerUpkeep()
	s.registerKept()
	s.registerSyncs()
	s.registerDiffKeys()
	s.registerPeers()
	if err := s.serveOpenAPI(); err != nil {
		return nil, err
	}
	return s.guard(flattenKeys(s.mux)), nil
}

// asProblem gives the refusals that huma makes itself a code.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	detail := e.Detail
	for _, d := range e.Errors {
		detail += "; " + d.Message
		if d.Location != "" {
			detail += " (" + d.Location + ")"
		}
	}
	return problem.FromStatus(e.Status, detail), nil
}

// guard checks the host and the token, bounds pauses within bodies, and logs.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", endpoint.ServerName)
		if !local(r) {
			writeProblem(w, problem.From(fmt.Errorf("%s for host %q: %w", r.Method, r.Host, problem.ErrHost)))
			return
		}
		if !s.authorized(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, problem.From(problem.ErrToken))
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			if coding := contentCoding(r); coding != "" {
				w.Header().Set("Accept-Encoding", "identity")
				writeProblem(w, problem.FromStatus(http.StatusUnsupportedMediaType, fmt.Sprintf("%s with Content-Encoding %.100q: a body is taken as it is, without a coding", r.Method, coding)))
				return
			}
			r.Body = &patientBody{r.Body, http.NewResponseController(w)}
		}
		began := time.Now()
		next.ServeHTTP(w, r)
		s.Logger.Debug("http", slog.String("method", r.Method), slog.String("path", r.URL.EscapedPath()), slog.Duration("took", time.Since(began)))
	})
}

// local tells whether a request over TCP names this machine as its host. A web
// page can make its own name resolve to 127.0.0.1 (DNS rebinding), and then read
// what needs no token; its requests still name the page's host.
func local(r *http.Request) bool {
	if overSocket(r) {
		return true
	}
	host := (&url.URL{Host: r.Host}).Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// overSocket tells whether a request came over a unix socket, whose mode guards the
// API.
func overSocket(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && at.Network() == "unix"
}

func (s *server) authorized(r *http.Request) bool {
	if s.Token == "" || open(r.URL.Path) || overSocket(r) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ") // a scheme has no case (RFC 9110, section 11.1)
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimLeft(token, " ")), []byte(s.Token)) == 1
}

// contentCoding is the coding of a request's body, "" where it has none (RFC 9110,
// section 8.4). Its bytes are not the value that the client means.
func contentCoding(r *http.Request) string {
	coding := strings.Join(r.Header.Values("Content-Encoding"), ",")
	for one := range strings.SplitSeq(coding, ",") {
		if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, "identity") {
			return coding
		}
	}
	return ""
}

func writeProblem(w http.ResponseWriter, p *problem.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone, then
}

// patientBody gives the client idleBody for each read, instead of a bound on
// the whole body, which may be an import of any length. The deadline is
// lifted at the end: one left standing would cancel the request's context.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idleBody)) // a test's recorder has no deadline
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (s *server) registerHealth() {
	type okOutput struct {
		ContentType string `header:"Content-Type"`
		Body        []byte
	}
	ok := &okOutput{ContentType: "text/plain; charset=utf-8", Body: []byte("ok\n")}
	huma.Register(s.api, huma.Operation{
		OperationID: "healthz", Method: http.MethodGet, Path: "/healthz", Summary: "The daemon runs; needs no token",
	}, func(context.Context, *struct{}) (*okOutput, error) { return ok, nil })
	huma.Register(s.api, huma.Operation{
		OperationID: "readyz", Method: http.MethodGet, Path: "/readyz", Summary: "The daemon takes work; needs no token",
	}, func(_ context.Context, in *readyInput) (*okOutput, error) {
		if err := s.ready(in); err != nil {
			return nil, err
		}
		return ok, nil
	})
	gatherer := s.Metrics
	if gatherer == nil {
		gatherer = prometheus.NewRegistry()
	}
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(loglimit.New(s.Logger.Handler(), nil), slog.LevelWarn)}))
	s.api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Metrics for Prometheus; needs no token",
		Responses: map[string]*huma.Response{"200": {
			Description: "OK", Content: map[string]*huma.MediaType{"text/plain": {}},
		}},
	})
	answers(s, api.GetVersion, func(context.Context, *api.None) (api.Program, error) { return s.Version, nil })
}

// serveOpenAPI writes the description once, when all routes are known.
func (s *server) serveOpenAPI() error {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")
	refuse := func(op *huma.Operation, status, description string) {
		op.Responses[status] = &huma.Response{
			Description: description,
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}
	}
	for path, item := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op == nil {
				continue
			}
			for status, description := range refusals[op.OperationID] {
				refuse(op, status, description)
			}
			if op.RequestBody != nil {
				refuse(op, "415", "The body has a content coding")
			}
			if strings.Contains(path, "{ns}") {
				refuse(op, "404", "The node has no such namespace, or the namespace no such record")
			}
			if op.Responses["403"] == nil {
				refuse(op, "403", "Over TCP, the request does not name this machine as its host")
			}
			op.Security = []map[string][]string{{}} // no token is demanded
			if !open(path) {
				refuse(op, "401", "The token is missing or wrong")
				op.Security = []map[string][]string{{"token": {}}, {}}
			}
			refuse(op, "default", "A problem; its code says which")
		}
	}
	components := s.api.OpenAPI().Components
	components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {
		Type: "http", Scheme: "bearer", Description: "Demanded over TCP; on the unix socket, its mode guards the API",
	}}
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // package huma's problem, which asProblem replaces
		delete(components.Schemas.Map(), unused)
	}
	spec, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return err
	}
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(spec) // the client is gone, then
	})
	s.mux.HandleFunc("/", s.noRoute)
	return nil
}

// refusals are the statuses that callers of an operation branch on, beside
// those that all have.
var refusals = map[string]map[string]string{
	"get": {"410": "The record was deleted; the ETag is the tombstone's version"},
	"put": {
		"412": "The record held is not what If-Match or If-None-Match demands",
		"413": "The key or the value is too long",
	},
	"delete": {
		"410": "The record was deleted already",
		"412": "The record held is not what If-Match demands",
	},
	"batch": {
		"400": "An item is malformed; item says which",
		"412": "The record that an item's key holds is not what its condition demands",
		"413": "An item, or the batch, is too large",
	},
	"watch":            {"400": "The cursor is malformed", "410": "The cursor has expired: watch from start"},
	"import":           {"400": "A line is no record", "413": "A key or value is too long", "502": "No host of a record's shard can be reached", "504": "Fewer hosts of a record's shard than asked for have said in time that they hold it"},
	"create-namespace": {"400": "The name or the skew is malformed", "409": "The name is taken"},
	"invite":           {"403": "This node is no admin", "404": "No such namespace"},
	"join":             {"400": "The ticket is malformed", "403": "The ticket was refused", "502": "The inviter cannot be reached"},
	"sync":             {"403": "One side is not a member", "404": "No such namespace", "502": "The peer cannot be reached"},
	"diff-keys":        {"403": "One side is not a member", "502": "The peer cannot be reached"},
	"diff":             {"403": "One side is not a member", "502": "The peer cannot be reached"},
}

// noRoute answers what no route takes: another method may be the right one.
func (s *server) noRoute(w http.ResponseWriter, r *http.Request) {
	asked, _, _ := strings.Cut(r.RequestURI, "?") // the path before flattenKeys
	asked = fmt.Sprintf("%s %.200s", r.Method, asked)
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		writeProblem(w, problem.FromStatus(http.StatusNotFound, asked+": no such route; see /openapi.json"))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, problem.FromStatus(http.StatusMethodNotAllowed, asked+": the route takes "+strings.Join(allowed, ", ")+"; see /openapi.json"))
}

// open tells whether a path needs no token.
func open(path string) bool {
	switch strings.TrimSuffix(path, "/") {
	case "/healthz", "/readyz", "/metrics", "/openapi.json":
		return true
	}
	return false
}
