package httpapi

import (
	"bytes"
	"errors"
	"net/url"
	"testing"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// FuzzKeyPath: any key survives the path; any path is read or refused, and
// what is read is written alike.
func FuzzKeyPath(f *testing.F) {
	f.Add("notes", []byte("a/../b"), "/v1/ns/notes/keys/a%2Fb")
	f.Add("n.s", []byte("\xff\x00%"), "/v1/ns/notes/key64/Lg")
	f.Add("x", []byte("."), "/v1/ns//keys/x")
	f.Fuzz(func(t *testing.T, ns string, key []byte, path string) {
		if ns != "" && len(key) > 0 {
			head, got, ok, err := splitKeyPath("/v1/ns/" + api.Escape(ns) + "/keys/" + api.Escape(string(key)))
			if err != nil || !ok || !bytes.Equal(got, key) {
				t.Fatalf("the key %q in %q came back as %q, %v, %v", key, ns, got, ok, err)
			}
			if plain, err := url.PathUnescape(head); err != nil || plain != "/v1/ns/"+ns+"/keys/" {
				t.Fatalf("the namespace %q came back as %q, %v", ns, plain, err)
			}
		}
		head, got, ok, err := splitKeyPath(path)
		if err != nil || !ok || len(got) == 0 {
			return
		}
		_, again, ok, err := splitKeyPath(head + url.PathEscape(string(got)))
		if err != nil || !ok || !bytes.Equal(again, got) {
			t.Fatalf("the key %q of %q came back as %q, %v, %v", got, path, again, ok, err)
		}
	})
}

// TestLineOf against a plain list.
func TestLineOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1, 50).Draw(t, "first")
		at := &lineOf{first: first}
		var twin []int
		line := first
		for _, skip := range rapid.SliceOf(rapid.IntRange(0, 2)).Draw(t, "empty lines before each") {
			line += skip
			at.note(line)
			twin = append(twin, line)
			line++
		}
		for i, want := range twin {
			if got := at.of(int64(i)); got != want {
				t.Fatalf("record %d is on line %d; got %d", i, want, got)
			}
		}
	})
}

// What goes into a header is one that clients can read.
func TestDetailInAHeader(t *testing.T) {
	if got, want := detail(errors.New("dial /ip6zone/a\x01b/ip6/fe80::1:\n* failed")), `dial /ip6zone/a\x01b/ip6/fe80::1: * failed`; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
