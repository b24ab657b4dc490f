package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// splitKeyPath cuts an escaped path /v1/ns/{ns}/keys/{key}, /why/{key} or /locate/{key}, in two: the
// part up to the key, still escaped, and the key's bytes. ok is false for all
// other paths.
func splitKeyPath(escaped string) (head string, key []byte, ok bool, err error) {
	rest, ok := strings.CutPrefix(escaped, "/v1/ns/")
	if !ok {
		return "", nil, false, nil
	}
	ns, rest, ok := strings.Cut(rest, "/")
	if !ok || ns == "" {
		return "", nil, false, nil
	}
	kind, last, ok := strings.Cut(rest, "/")
	if !ok || last == "" {
		return "", nil, false, nil
	}
	switch kind {
	case "keys", "key64":
		head = "/v1/ns/" + ns + "/keys/"
	case "why", "why64":
		head = "/v1/ns/" + ns + "/why/"
	case "locate", "locate64":
		head = "/v1/ns/" + ns + "/locate/"
	}
	switch kind {
	case "keys", "why", "locate":
		s, err := url.PathUnescape(last)
		if err != nil {
			return "", nil, true, problem.Usage("the key in %s: %w", escaped, err)
		}
		return head, []byte(s), true, nil
	case "key64", "why64", "locate64":
		key, err := base64.RawURLEncoding.Strict().DecodeString(last)
		if err != nil {
			return "", nil, true, problem.Usage("the key in %s: %w (URL-safe alphabet, no padding)", escaped, err)
		}
		return head, key, true, nil
	}
	return "", nil, false, nil
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
