package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServeEnds: the daemon ends although a request hangs, tells the client,
// and leaves neither goroutines nor its socket behind.
func TestServeEnds(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	announced, out := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- Main(ctx, []string{"serve", "-o", "json", "--data-dir", dir, "--listen", "/ip4/127.0.0.1/tcp/0"}, nil, out, io.Discard)
		out.Close()
	}()
	if _, err := announced.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, announced)

	socket := filepath.Join(dir, "syncd.sock")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Post("http://syncd/v1/namespaces", "application/json", strings.NewReader(`{"name":"notes"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()

	// An import whose lines never end, beyond what buffers on the way hold.
	lines, body := io.Pipe()
	answered := make(chan string, 1)
	go func() {
		resp, err := client.Post("http://syncd/v1/ns/notes/import", "application/x-ndjson", lines)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		answered <- resp.Status
	}()
	long := strings.Repeat("v", 4096)
	for i := range 500 {
		fmt.Fprintf(body, `{"key":"k%d","value":"%s"}`+"\n", i, long)
	}
	end()
	if code := <-exit; code != problem.ExitOK {
		t.Errorf("exit code %d", code)
	}
	body.Close()
	t.Logf("the client was told: %s", <-answered)
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
