package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/jsonlines"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// importInto runs an import of some lines against a daemon that a handler
// plays, and returns the exit code and what was printed.
func importInto(t *testing.T, lines string, handler http.HandlerFunc, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	return against(t.Context(), t, strings.NewReader(lines), handler, append([]string{"import", "notes"}, flags...)...)
}

// against runs a command against a daemon that a handler plays.
func against(ctx context.Context, t *testing.T, in io.Reader, handler http.Handler, command ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "api.token"), []byte("token-of-the-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = Main(ctx, append([]string{"--data-dir", dir, "--api", s.URL}, command...), in, &out, &errs)
	// The command that goes on names the node, too, which is another one each time.
	return code, out.String(), strings.ReplaceAll(errs.String(), " --data-dir "+dir+" --api "+s.URL, "")
}

// TestImportInChunks: all lines arrive once, in order, with their numbers.
func TestImportInChunks(t *testing.T) {
	const count, from = 2*chunkLines + 100, 11
	var text, got strings.Builder
	for i := range count {
		text.WriteString(strings.Repeat("x", i%7) + "\n")
	}
	next := from
	code, stdout, stderr := importInto(t, text.String(), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-of-the-test" {
			t.Errorf("the token was not sent")
		}
		var line int
		if err := json.Unmarshal([]byte(r.URL.Query().Get("line")), &line); err != nil || line != next {
			t.Errorf("the chunk is said to begin at line %d, %v; want %d", line, err, next)
		}
		b, _ := io.ReadAll(r.Body)
		got.Write(b)
		n := bytes.Count(b, []byte("\n"))
		next += n
		json.NewEncoder(w).Encode(api.ImportResult{Lines: n, ImportResult: peer.ImportResult{Items: int64(n), Written: int64(n)}})
	}, "--from-line", "11")
	if code != problem.ExitOK || !strings.HasPrefix(stdout, "16474 records read: 16474 written") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if want := strings.Join(strings.SplitAfter(text.String(), "\n")[from-1:], ""); got.String() != want {
		t.Error("other lines arrived than were given")
	}
}

// TestImportInDoubt: when the daemon goes away, the message names the first
// line of which it is not known whether it was kept.
func TestImportInDoubt(t *testing.T) {
	chunks := 0
	code, _, stderr := importInto(t, strings.Repeat("x\n", 3*chunkLines), func(w http.ResponseWriter, r *http.Request) {
		if chunks++; chunks == 3 {
			panic(http.ErrAbortHandler)
		}
		io.Copy(io.Discard, r.Body)
		json.NewEncoder(w).Encode(api.ImportResult{ImportResult: peer.ImportResult{Items: chunkLines}})
	})
	if code != problem.ExitNoDaemon || !strings.Contains(stderr, "16384 lines (16384 records) are kept, and perhaps some that follow; go on with: syncd import notes - --from-line 16385") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// stalled gives some lines and then nothing more, as an open pipe does.
type stalled struct {
	lines   io.Reader
	waiting func() // called when the reader begins to wait
	release chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	if n, _ := s.lines.Read(p); n > 0 {
		return n, nil
	}
	s.waiting()
	<-s.release
	return 0, io.EOF
}

// TestImportInterrupted: an import that is interrupted says how many lines are
// kept and how to go on, and ends with 130: while it waits for input, and while
// a request is on the way, which is given time to end.
func TestImportInterrupted(t *testing.T) {
	for _, c := range []struct {
		lines     int
		inRequest bool
		want      string
	}{
		{0, false, "interrupted; 0 lines (0 records) are kept; go on with: syncd import notes - --from-line 1"},
		{5, false, "interrupted; 0 lines (0 records) are kept; go on with: syncd import notes - --from-line 1"},
		{chunkLines + 5, false, "interrupted; 8192 lines (8000 records) are kept; go on with: syncd import notes - --from-line 8193"},
		{chunkLines + 5, true, "interrupted; 8192 lines (8000 records) are kept; go on with: syncd import notes - --from-line 8193"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		in := &stalled{strings.NewReader(strings.Repeat("x\n", c.lines)), func() {}, make(chan struct{})}
		if !c.inRequest {
			in.waiting = interrupt
		}
		code, _, stderr := against(ctx, t, in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if c.inRequest {
				interrupt()
			}
			json.NewEncoder(w).Encode(api.ImportResult{Lines: chunkLines, ImportResult: peer.ImportResult{Items: 8000}})
		}), "import", "notes")
		if code != problem.ExitInterrupted || !strings.Contains(stderr, c.want) {
			t.Errorf("%+v: exit code %d, %q", c, code, stderr)
		}
		close(in.release)
	}
}

// TestImportRefused: what is no fault of a line does not blame one.
func TestImportRefused(t *testing.T) {
	code, _, stderr := importInto(t, "x\n", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"code":"denied","detail":"import into notes: denied: your role is read","line":1}`)
	})
	if code != problem.ExitDenied || strings.Contains(stderr, "correct") || strings.Contains(stderr, "--from-line") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// TestImportStopped: an import that stops at a line says how many lines before it are kept, and where to go on.
func TestImportStopped(t *testing.T) {
	code, _, stderr := importInto(t, "x\nx\nx\nx\n", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		io.WriteString(w, `{"code":"unconfirmed","detail":"import into notes: not confirmed","line":4,"kept":2}`)
	}, "--from-line", "2")
	if code != problem.ExitLimit || !strings.Contains(stderr, "2 lines (2 records) are kept; go on with: syncd import notes - --from-line 4") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// TestImportInDoubtBeforeALongLine: where the daemon goes away, the lines before one that is too long are in doubt,
// and an import goes on at the first of them.
func TestImportInDoubtBeforeALongLine(t *testing.T) {
	code, _, stderr := importInto(t, "x\nx\n"+strings.Repeat("x", jsonlines.MaxLine+1)+"\n", func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	if code != problem.ExitNoDaemon || !strings.Contains(stderr, "0 lines (0 records) are kept, and perhaps some that follow; go on with: syncd import notes - --from-line 1") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
