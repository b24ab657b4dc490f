package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	known := []string{"listen", "log-format", "quiet"}
	for _, c := range []struct{ name, text, key, want, err string }{
		{name: "empty"},
		{name: "only a comment", text: "# nothing\n"},
		{name: "text", text: "log-format: json\n", key: "log-format", want: "json"},
		{name: "list", text: "listen: [/ip4/127.0.0.1/tcp/0, /ip6/::1/tcp/0]\n", key: "listen", want: "/ip4/127.0.0.1/tcp/0,/ip6/::1/tcp/0"},
		{name: "boolean", text: "quiet: true\n", key: "quiet", want: "true"},
		{name: "unknown key", text: "lisen: x\n", err: `unknown key "lisen"; known are listen, log-format, quiet`},
		{name: "nested", text: "listen:\n  a: b\n", err: "must be a string"},
		{name: "null", text: "listen:\n", err: "must be a string"},
		{name: "twice", text: "quiet: true\nquiet: false\n", err: "already defined"},
		{name: "two documents", text: "quiet: true\n---\nlog-format: json\n", err: "more than one document"},
		{name: "a second one, empty", text: "quiet: true\n---\n", err: "more than one document"},
		{name: "a second one, broken", text: "quiet: true\n---\n[\n", err: "yaml: "},
		{name: "one, marked", text: "---\nquiet: true\n...\n", key: "quiet", want: "true"},
		{name: "no map", text: "- a\n", err: "cannot unmarshal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Load(path, known, false)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), path) {
					t.Fatalf("error %v; want one about %q in %s", err, c.err, path)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, ok, err := f.Get(c.key)
			if err != nil || got != c.want || ok != (c.key != "") {
				t.Fatalf("Get(%q) = %q, %v, %v; want %q", c.key, got, ok, err, c.want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if _, err := Load(path, nil, false); err == nil {
		t.Error("a file asked for by name may not be missing")
	}
	f, err := Load(path, nil, true)
	if err != nil || len(f.Keys()) != 0 {
		t.Errorf("an optional file may be missing: %v", err)
	}
}

// FuzzParse: a file is refused, or each of its keys has a value as text.
func FuzzParse(f *testing.F) {
	f.Add("listen: [a, b]\nquiet: true\n")
	f.Add("a: &x {b: *x}\n")
	f.Add("log-format: 1e3\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse(FileName, []byte(text), []string{"listen", "log-format", "quiet"})
		if err != nil {
			return
		}
		for _, key := range file.Keys() {
			if _, ok, err := file.Get(key); !ok || err != nil {
				t.Fatalf("%q of %q: %v, %v", key, text, ok, err)
			}
		}
	})
}
