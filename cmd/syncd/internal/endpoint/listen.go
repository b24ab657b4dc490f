// Package endpoint is where a daemon serves its API: the address, a unix socket
// or a loopback TCP port, and the file of the bearer token that TCP demands.
// Daemons open it, clients find it.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// Addr is where the API is served: a unix socket or a loopback TCP address.
type Addr struct {
	Network string // "unix" or "tcp"
	Address string // a path, or host:port
}

// maxSocketPath is what sun_path of a unix socket's address holds on Linux,
// less the final zero byte.
const maxSocketPath = 107

// ParseAddr reads unix:PATH or http://HOST:PORT, HOST a loopback address.
func ParseAddr(s string) (Addr, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || len(path) > maxSocketPath {
			return Addr{}, problem.Usage("API address %q: the path of a unix socket has 1 to %d bytes", s, maxSocketPath)
		}
		return Addr{"unix", path}, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return Addr{}, problem.Usage("API address %q: want unix:PATH or http://HOST:PORT", s)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return Addr{}, problem.Usage("API address %q: %s is not a loopback address; the API is not encrypted, reach it from elsewhere through a tunnel such as ssh -L", s, u.Hostname())
	}
	return Addr{"tcp", u.Host}, nil
}

// String is the form that ParseAddr reads.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return "http://" + a.Address
}

// ServerName stands in the Server header of each of a daemon's answers.
const ServerName = "syncd"

// ErrRunning: another daemon serves there.
var ErrRunning = errors.New("another daemon is running")

// probeTimeout bounds asking which program serves on an address.
const probeTimeout = time.Second

// Answers tells whether anything takes connections at the address.
func Answers(ctx context.Context, a Addr) bool {
	d := net.Dialer{Timeout: probeTimeout}
	conn, err := d.DialContext(ctx, a.Network, a.Address)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// Probe reports ErrRunning if a daemon answers at the address, and another
// error if some other program holds a port. A program that holds the socket of a
// data directory counts as a daemon, even if it is too busy to answer.
func Probe(ctx context.Context, a Addr) error {
	switch {
	case !Answers(ctx, a):
		return nil
	case a.Network == "unix" || isDaemon(ctx, a):
		return fmt.Errorf("%w: it answers on %s; stop it first, or choose another --data-dir and --api", ErrRunning, a)
	}
	return errInUse(a)
}

func errInUse(a Addr) error {
	return fmt.Errorf("serving the API on %s: the port is in use; stop what uses it, or choose another --api", a)
}

// isDaemon tells whether what answers at a TCP address is a syncd: each of its
// answers says so.
func isDaemon(ctx context.Context, a Addr) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.String()+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // read only
	return resp.Header.Get("Server") == ServerName
}

// Listen opens the address. A socket that a crashed daemon left behind is
// replaced; one that answers is ErrRunning. A unix socket has mode 0600; on
// Windows, which has no modes, the data directory guards it.
func Listen(ctx context.Context, a Addr) (net.Listener, error) {
	var lc net.ListenConfig
	if a.Network != "unix" {
		l, err := lc.Listen(ctx, a.Network, a.Address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, errInUse(a)
		}
		if err != nil {
			return nil, fmt.Errorf("serving the API on %s: %w", a, err)
		}
		return l, nil
	}
	switch info, err := os.Lstat(a.Address); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("serving the API on %s: %w", a, err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("serving the API on %s: a file that is no socket is in the way; move it, or choose another --api", a)
	default:
		if err := Probe(ctx, a); err != nil {
			return nil, err
		}
		if err := os.Remove(a.Address); err != nil {
			return nil, fmt.Errorf("removing the socket of a daemon that is gone: %w", err)
		}
	}
	l, err := listenPrivately(ctx, &lc, a.Address)
	if err != nil {
		return nil, fmt.Errorf("serving the API on %s: %w", a, err)
	}
	if err := os.Chmod(a.Address, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("serving the API on %s: %w", a, err), l.Close())
	}
	return l, nil
}
