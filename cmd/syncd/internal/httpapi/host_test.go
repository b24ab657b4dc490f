package httpapi_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHost: over TCP a request must name this machine as its host, whatever it
// asks for: a page whose name was made to resolve to this machine reads nothing.
func TestHost(t *testing.T) {
	s := serve(t, "")
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/openapi.json", "/v1/status", "/nowhere"} {
		for host, allowed := range map[string]bool{
			"127.0.0.1:80": true, "localhost": true, "[::1]:4748": true, "127.9.9.9": true,
			"evil.example": false, "evil.example:80": false, "localhost.evil.example": false, "192.0.2.1": false, "": false,
		} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			req.Host = host
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, req)
			if refused := w.Code == http.StatusForbidden; refused == allowed {
				t.Errorf("%s of host %q: status %d", path, host, w.Code)
			}
		}
	}
	// On a unix socket there are no names to be trusted.
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "s", Net: "unix"}))
	w := httptest.NewRecorder()
	if s.Config.Handler.ServeHTTP(w, req); w.Code != http.StatusOK {
		t.Errorf("on a unix socket: status %d", w.Code)
	}
}
