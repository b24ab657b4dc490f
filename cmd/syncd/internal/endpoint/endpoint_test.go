package endpoint

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

func TestParseAddr(t *testing.T) {
	for in, want := range map[string]string{
		"unix:/run/x.sock":      "unix:/run/x.sock",
		"unix:///run/x.sock":    "unix:/run/x.sock",
		"unix:rel.sock":         "unix:rel.sock",
		"http://127.0.0.1:80":   "http://127.0.0.1:80",
		"http://127.9.9.9:80/":  "http://127.9.9.9:80",
		"http://[::1]:80":       "http://[::1]:80",
		"http://localhost:4748": "http://localhost:4748",
	} {
		got, err := ParseAddr(in)
		if err != nil || got.String() != want {
			t.Errorf("ParseAddr(%q) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "unix:", "unix:" + strings.Repeat("x", 108), "/run/x.sock", "https://127.0.0.1:80", "http://127.0.0.1",
		"http://0.0.0.0:80", "http://192.0.2.1:80", "http://example.org:80", "http://127.0.0.1:80/x", "http://u@127.0.0.1:80", "http://127.0.0.1:80?x",
	} {
		if got, err := ParseAddr(in); !errors.Is(err, problem.ErrUsage) {
			t.Errorf("ParseAddr(%q) = %v, %v; want a usage error", in, got, err)
		}
	}
}

func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	addr := Addr{"unix", filepath.Join(dir, "s")}
	// A socket on which no program listens any more.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr.Address, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(addr.Address); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
	}
	if _, err := Listen(t.Context(), addr); !errors.Is(err, ErrRunning) {
		t.Errorf("error %v; want ErrRunning", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(addr.Address); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
