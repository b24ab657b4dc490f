package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/syncd-io/syncd/cmd/syncd/internal/simulate"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"syncd": main, "syncd-testnet": func() { os.Exit(simulate.Process()) }})
}

// TestScript runs the scripts that specify the program.
//
// Beside testscript's own commands they have
//
//	ready DIR        wait until the daemon of a data directory takes work
//	let NAME PATH    set a variable to a field of the JSON on standard output, such as .id or .addrs.0
//	bytes FILE HEX   write a file of the bytes that are written in hexadecimal
//	fill FILE N      write a file of N letters x
//	busyport NAME    hold a TCP port until the script ends, and set a variable to it
//	freeport NAME    set a variable to a TCP port that was free just now
//	readyport PORT   wait until a daemon that serves its API on the port takes work
//	terminate WORD   send SIGTERM to the background command that has the word among its arguments
//	code N COMMAND   run a command that must end with exit code N
//	page FILE PAGE [HEAD...] write the commands of a page, or of some of its sections, with ports that the system chooses and more time
//	soon COMMAND     run a command until it succeeds, for a minute at most
//	flip DIR TEXT    flip a bit of a text where it stands in a file of a folder
//	xml FILE         fail unless a file is well-formed XML
//	deadsocket FILE  leave a unix socket behind on which no program listens
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			// A program under the race detector sleeps for a second at its
			// end by default, to let other goroutines report races.
			// A sync of its own accord would spoil what a script counts.
			env.Setenv("SYNCD_SYNC_INTERVAL", "0s")
			env.Setenv("GORACE", "atexit_sleep_ms=20")
			// Paths of unix sockets are short; those of test folders are not.
			dir, err := os.MkdirTemp("", "sd") //nolint:usetesting // the paths of t.TempDir are too long for sockets
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(dir) })
			env.Setenv("D", dir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ready": ready, "let": let, "bytes": writeBytes, "fill": fill, "busyport": busyPort,
			"freeport": freePort, "readyport": readyPort,
			"code": exitCode, "terminate": terminate, "deadsocket": deadSocket, "page": page,
			"xml": wellFormed, "flip": flip, "soon": soon,
		},
	})
}

// patience is how long a daemon may take to start on a busy machine.
const patience = 5 * time.Minute

func ready(ts *testscript.TestScript, _ bool, args []string) {
	waitReady(ts, "unix", filepath.Join(ts.MkAbs(args[0]), "syncd.sock"))
}

func readyPort(ts *testscript.TestScript, _ bool, args []string) {
	waitReady(ts, "tcp", "127.0.0.1:"+args[0])
}

func waitReady(ts *testscript.TestScript, network, address string) {
	client := &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}},
	}
	host := "syncd"
	if network == "tcp" {
		host = address
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		resp, err := client.Get("http://" + host + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
			err = errors.New(resp.Status)
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no daemon is ready on %s: %v", address, err)
		}
	}
}

func wellFormed(ts *testscript.TestScript, _ bool, args []string) {
	for d := xml.NewDecoder(strings.NewReader(ts.ReadFile(args[0]))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			ts.Fatalf("%s: %v", args[0], err)
		}
	}
}

// Free ports lie below those that Linux gives to outgoing connections and to listeners
// on port 0 (ip_local_port_range, from 32768): such a one could be given away before the
// daemon takes it.
const firstPort, endPort = 20000, 32768

func freePort(ts *testscript.TestScript, _ bool, args []string) {
	var err error
	for range 100 {
		port := fmt.Sprint(firstPort + rand.IntN(endPort-firstPort))
		var l net.Listener
		if l, err = net.Listen("tcp4", "127.0.0.1:"+port); err == nil {
			ts.Setenv(args[0], port)
			ts.Check(l.Close())
			return
		}
	}
	ts.Fatalf("no free port among 100 between %d and %d: %v", firstPort, endPort, err)
}

func let(ts *testscript.TestScript, _ bool, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for _, step := range strings.Split(strings.Trim(args[1], "."), ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			var i int
			_, err := fmt.Sscan(step, &i)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("%s: no element %d", args[1], i)
			}
			value = v[i]
		}
	}
	if value == nil {
		ts.Fatalf("%s: no such field in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

func writeBytes(ts *testscript.TestScript, _ bool, args []string) {
	var b []byte
	_, err := fmt.Sscanf(args[1], "%x", &b)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	var n int
	_, err := fmt.Sscan(args[1], &n)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("x", n)), 0o600))
}

func busyPort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
}

// exitCode runs a command that must end with the given code.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	var want int
	_, err := fmt.Sscan(args[0], &want)
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
	}
	if got != want {
		ts.Fatalf("exit code %d; want %d", got, want)
	}
}

func terminate(ts *testscript.TestScript, _ bool, args []string) {
	for _, job := range ts.BackgroundCmds() {
		if slices.Contains(job.Args, args[0]) {
			ts.Check(job.Process.Signal(syscall.SIGTERM))
			return
		}
	}
	ts.Fatalf("no background command has the argument %q", args[0])
}

func deadSocket(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	ts.Check(err)
	l.SetUnlinkOnClose(false)
	ts.Check(l.Close())
}

// page writes the commands of a page of the documents, or of some of its sections, as a shell script.
func page(ts *testscript.TestScript, _ bool, args []string) {
	text, err := os.ReadFile(filepath.Join("../..", args[1]))
	ts.Check(err)
	if heads := args[2:]; len(heads) > 0 {
		whole := text
		text = nil
		for _, head := range heads {
			_, after, ok := bytes.Cut(whole, []byte("\n## "+head+"\n"))
			if !ok {
				ts.Fatalf("%s has no section %q", args[1], head)
			}
			section, _, _ := bytes.Cut(after, []byte("\n## "))
			text = append(text, section...)
		}
	}
	var script strings.Builder
	for i, block := range strings.Split(string(text), "```") {
		if command, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			script.WriteString(pageTimes.Replace(pagePort.ReplaceAllString(command, "/tcp/0")))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(script.String()), 0o600))
}

var pagePort = regexp.MustCompile(`/tcp/41\d\d`)

// pageTimes gives a busy machine more time than the pages do.
var pageTimes = strings.NewReplacer("--await 10s", "--await 5m", "--timeout 10s", "--timeout 5m", "--timeout 1m", "--timeout 5m", "timeout 2 ", "timeout 15 ", "--max-time 2 ", "--max-time 15 ")

// soon waits for what a daemon does by itself.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	for until := time.Now().Add(patience); ts.Exec(args[0], args[1:]...) != nil; {
		if time.Now().After(until) {
			ts.Fatalf("%q does not succeed", args)
		}
		time.Sleep(50 * time.Millisecond) // each try starts a process, which tells nothing of when to try again
	}
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // a folder
		}
		if at := bytes.Index(b, []byte(args[1])); at >= 0 {
			b[at] ^= 1
			ts.Check(os.WriteFile(path, b, 0o600))
			return
		}
	}
	ts.Fatalf("%q is in no file of %s", args[1], args[0])
}
